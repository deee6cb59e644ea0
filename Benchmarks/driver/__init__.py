# SPDX-License-Identifier: Apache-2.0
"""The benchmark's driver: starts buses and programs, takes the measurements in turns, and reports."""
