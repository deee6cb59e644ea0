// SPDX-License-Identifier: Apache-2.0
#pragma once

/* What is here takes effect by being linked: see threads.c. */
