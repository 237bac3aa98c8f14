# Sourced: steps that each print one line with their time; what they say goes to a log. A step that
# fails prints what failed, the last lines of its log, and what to do.
StepsLog() {  # folder
  steps_folder=$1 steps_done=0
  rm -rf "$1"
  mkdir -p "$1"
}

StepLine() { printf '[%2d/%d] %-52s ' "$steps_done" "$STEPS" "$1"; }

Step() {  # title hint command…
  local title=$1 hint=$2 start=$SECONDS log status
  shift 2
  steps_done=$((steps_done + 1))
  log=$steps_folder/$(printf '%02d' "$steps_done").log
  StepLine "$title"
  set +e  # a subshell of its own, outside any condition: there "set -e" holds inside functions too
  (set -e; "$@") >"$log" 2>&1 </dev/null
  status=$?
  set -e
  if [ $status = 0 ]; then
    printf '%5d s\n' $((SECONDS - start))
    return 0
  fi
  printf 'FAILED after %d s\n\n' $((SECONDS - start))
  tail -n 20 "$log" | sed 's/^/    /'
  printf '\nStep "%s" failed: %s\nThe whole log: %s\nWhat to do: %s\n' "$title" "$*" "$log" "$hint"
  exit 1
}

# A step that shows progress itself; when it fails, a second command says what is known.
FollowStep() {  # title hint command why
  local title=$1 hint=$2 start=$SECONDS
  steps_done=$((steps_done + 1))
  if ("$3"); then
    StepLine "$title"
    printf '%5d s\n' $((SECONDS - start))
    return 0
  fi
  printf '\n'
  ("$4") 2>&1 | sed 's/^/    /'
  printf '\nStep "%s" failed after %d s.\nWhat to do: %s\n' "$title" $((SECONDS - start)) "$hint"
  exit 1
}
