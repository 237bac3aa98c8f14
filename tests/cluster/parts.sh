# Sourced by cluster.sh: the processes ("parts") of a cluster kept in the folder $W.
# Each part has $W/run/NAME.pid, NAME.id (boot and start time: a pid may be used again by another
# process), NAME.cmd (what it was started with) and $W/log/NAME.log.

ProcessId() {  # pid -> "<boot id> <start time>", nothing when there is no such process
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
  stat=${stat##*) }
  # shellcheck disable=SC2086
  set -- $stat
  [ "$1" = Z ] || echo "$(cat /proc/sys/kernel/random/boot_id) ${20}"
}

Alive() {  # part
  local pid
  pid=$(cat "$W/run/$1.pid" 2>/dev/null) || return 1
  local id
  id=$(ProcessId "$pid")
  [ -n "$id" ] && [ "$id" = "$(cat "$W/run/$1.id" 2>/dev/null)" ]
}

# Starts a part unless it already runs with the same program, arguments and configuration.
Part() {  # name configuration-file|- program arguments…
  local name=$1 config=$2
  shift 2
  local cmd
  cmd=$(printf '%s\n' "$@" "$(stat -Lc '%s %Y' "$(command -v "$1")")"; [ "$config" = - ] || cat "$config")
  if Alive "$name"; then
    [ "$cmd" = "$(cat "$W/run/$name.cmd")" ] && return 0
    echo "restarting $name: its configuration changed"
    Stop "$name"
  fi
  printf '%s\n' "$cmd" >"$W/run/$name.cmd"
  setsid "$@" >>"$W/log/$name.log" 2>&1 </dev/null 9>&- &
  echo $! >"$W/run/$name.pid"
  ProcessId $! >"$W/run/$name.id"
}

Stop() {  # part…: all are asked to end at once, then waited for
  local name tries
  for name in "$@"; do
    ! Alive "$name" || kill "$(cat "$W/run/$name.pid")" 2>/dev/null || true
  done
  for name in "$@"; do
    for ((tries = 0; tries < 200; tries++)); do
      Alive "$name" || break
      [ $tries -ne 150 ] || kill -9 "$(cat "$W/run/$name.pid")" 2>/dev/null || true
      sleep 0.1
    done
    ! Alive "$name" || Die "$name (pid $(cat "$W/run/$name.pid")) does not end"
    rm -f "$W/run/$name."{pid,id,cmd}
  done
}

# Runs a check every quarter second. When it does not hold in time, or the part is dead, ends with
# the last lines of the part's log.
WaitFor() {  # part seconds what check…
  local name=$1 seconds=$2 what=$3 until
  shift 3
  until=$((SECONDS + seconds))
  while ! "$@" >/dev/null 2>&1; do
    if ! Alive "$name"; then
      tail -n 15 "$W/log/$name.log" >&2
      Die "$name ended by itself; its last lines are above, the whole log is $W/log/$name.log"
    fi
    if [ $SECONDS -ge $until ]; then
      tail -n 15 "$W/log/$name.log" >&2
      Die "$what did not come true within $seconds s; the log is $W/log/$name.log"
    fi
    sleep 0.25
  done
}
