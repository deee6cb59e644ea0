// SPDX-License-Identifier: Apache-2.0
#pragma once

/* This takes effect by being linked: see threads.c. */
