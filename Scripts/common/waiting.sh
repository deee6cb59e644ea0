# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For the scripts that check something on a bus: how they wait. To be sourced.

# waits COMMAND... - until it succeeds, 2 minutes at most
waits() {
  local end=$((SECONDS + 120))
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.05
  done
}

# is_listed PROCESS [--system] - whether the agent knows an observer of the process. An observer goes live without the
# agent if that does not answer within 2 seconds, and registers later.
is_listed() { [[ $(notify-lifecycle "${@:2}" list --json) == *"\"pid\":$1,"* ]]; }
