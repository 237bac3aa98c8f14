#!/bin/bash
# base_image.sh: makes sure that buildah has docker.io/library/debian:bookworm-slim, which the
# Dockerfiles start from. Where it can't be pulled, an equal base is made from Debian's packages.
set -euo pipefail
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/buildah.sh"
name=docker.io/library/debian:bookworm-slim

! Buildah inspect --type image "$name" >/dev/null 2>&1 || exit 0
if timeout 90 buildah "${BUILDAH_STORE[@]}" pull -q "$name" >/dev/null 2>&1; then
  exit 0
fi
echo "$name can't be pulled; making it from Debian's packages"
tar=$PTO_CACHE/images/debian-bookworm.tar
if [ ! -e "$tar" ]; then
  mkdir -p "$(dirname "$tar")"
  # Without the files that a container does not read, as in the slim image; licences stay.
  mmdebstrap --quiet --variant=minbase \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --include=ca-certificates bookworm "$tar.new.tar" || Die "mmdebstrap failed; is the Debian mirror reachable?"
  mv "$tar.new.tar" "$tar"
fi
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
ln "$tar" "$context/base.tar" 2>/dev/null || cp "$tar" "$context/base.tar"
printf 'FROM scratch\nADD base.tar /\nCMD ["bash"]\n' >"$context/Dockerfile"
Buildah bud -q --isolation chroot -t "$name" "$context" >/dev/null
