# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For scripts that play programs in acts: starting them and reading their output, buses, and a mock logind. To be sourced.
# The script must set $play, what this is, $room, a folder of its own, and $detached, a command that starts programs in
# process groups of their own, or nothing.
: "${play:?}" "${room:?}" "${detached=}"
# shellcheck source=Scripts/common/waiting.sh
. "${BASH_SOURCE[0]%/*}/waiting.sh"

# How long to wait for what must come, in seconds. A desktop that waits in vain for a service gives up after 25.
patience=120

bold='' dim='' green='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
  bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' plain=$'\e[0m'
fi
acts=0
act() {
  acts=$((acts + 1))
  printf '\n%s%d. %s%s\n\n' "$bold" "$acts" "$1" "$plain"
}
shows() { printf '  %s%-8s%s %s\n' "$dim" "$1" "$plain" "$2"; }

fail() {
  printf '\n%s\n' "The $play went wrong: $*" >&2
  local log
  for log in "$room"/*.log; do
    [[ ! -s $log ]] || { echo "--- ${log##*/}"; tail -n 20 "$log"; } >&2
  done
  exit 1
}

# until_true WHAT COMMAND... - polls a condition
until_true() { waits "${@:2}" || fail "$1"; }

# --- Programs ---------------------------------------------------------------------------------------------------------

# By the name of a program, or of the person typing: its process, and the read end of its output.
declare -A process=() output=()

# start WHO COMMAND... - runs it in the background. It must not read from the terminal.
start() {
  local who=$1 pipe=$room/output input
  shift
  mkfifo "$pipe"
  # A job, since bash may miss the end of a process substitution that ends at once, and would wait for it forever.
  $detached "$@" >"$pipe" 2>&1 </dev/null &
  process[$who]=$!
  exec {input}<"$pipe"
  rm "$pipe"
  output[$who]=$input
}

# reads WHO PATTERN... - shows the next lines of output, and checks that each matches its pattern; leaves the last one in
# $heard
reads() {
  local who=$1 pattern
  shift
  for pattern in "$@"; do
    IFS= read -r -t "$patience" -u "${output[$who]}" heard || fail "$who should have said '$pattern', but said nothing."
    shows "$who" "$green$heard$plain"
    # shellcheck disable=SC2053 # It is a pattern.
    [[ $heard == $pattern ]] || fail "$who should have said '$pattern'."
  done
}

# ends WHO [STATUS] - checks that it says nothing more, and exits with a status that matches this pattern, by default 0
ends() {
  local who=$1 status=0 line input=${output[$1]}
  if IFS= read -r -t "$patience" -u "$input" line; then
    fail "$who should have ended, but said '$line'."
  elif (($? > 128)); then
    fail "$who should have ended."
  fi
  exec {input}<&-
  wait "${process[$who]}" 2>/dev/null || status=$?
  unset "process[$who]" "output[$who]"
  # shellcheck disable=SC2053 # It is a pattern.
  [[ $status == ${2:-0} ]] || fail "$who exited with $status."
}

# halt WHAT [SIGNAL] - ends a process whose output is not read
halt() {
  kill "-${2:-TERM}" "${process[$1]}"
  wait "${process[$1]}" 2>/dev/null || true
  unset "process[$1]"
}

# stop WHO [SIGNAL] - ends a program whose output is read
stop() {
  kill "-${2:-TERM}" "${process[$1]}"
  ends "$1" '*'
}

# make_call NAME, await_call NAME - makes a pipe, $room/NAME.up, into which a program writes a line once it is up, and
# reads that line into $heard
make_call() {
  rm -f "$room/$1.up"
  mkfifo "$room/$1.up"
}
await_call() {
  local input status=0
  # Opened for writing too, since opening it for reading only would block until there is a writer.
  exec {input}<>"$room/$1.up"
  IFS= read -r -t "$patience" -u "$input" heard || status=1
  exec {input}<&-
  return "$status"
}

# --- The machine ------------------------------------------------------------------------------------------------------

# start_bus NAME [SERVICES] - starts a private dbus-daemon, with the activation files in SERVICES; sets $address
start_bus() {
  local name=$1
  cat >"$room/$name.conf" <<XML
<busconfig>
  <type>session</type>
  <listen>unix:path=$room/$name</listen>
  ${2:+<servicedir>$2</servicedir>}
  <policy context="default">
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
    <allow own="*"/>
  </policy>
</busconfig>
XML
  make_call "$name"
  $detached dbus-daemon --config-file="$room/$name.conf" --nofork --nopidfile --nosyslog --print-address=3 \
    3>"$room/$name.up" >"$room/$name.log" 2>&1 &
  process[$name]=$!
  # It prints its address once it listens.
  await_call "$name" || fail "dbus-daemon did not start."
  address=$heard
}

login1() {
  dbus-send --system --print-reply --reply-timeout=120000 --dest=org.freedesktop.login1 "$@" >/dev/null 2>"$room/login1.log"
}

# start_machine - starts a system bus and, if python3-dbusmock is installed, a mock logind with one session on it, by $python
start_machine() {
  start_bus system
  export DBUS_SYSTEM_BUS_ADDRESS=$address
  for python in /usr/bin/python3 python3; do
    "$python" -c 'import dbusmock.templates.logind' 2>/dev/null || continue
    $detached "$python" -m dbusmock --system --template logind >"$room/logind.log" 2>&1 &
    process[logind]=$!
    until_true "python3-dbusmock did not become logind." login1 / org.freedesktop.DBus.Peer.Ping
    login1 /org/freedesktop/login1 org.freedesktop.DBus.Mock.AddSession string:2 string:seat0 uint32:"$(id -u)" \
      string:user boolean:true || fail "logind has no session."
    return
  done
}
