#!/bin/bash
# The two images, from docker/ and the programs of build/release, with buildah (as root, no daemon).
#   images.sh build          builds them and keeps each as an archive, for "ctr images import" or
#                            "docker load": $PTO_CACHE/images/{pytorch-operator,mnist-trainer}.tar
#   images.sh import         puts them into the node cluster of this machine, unless they are there
#   images.sh push REGISTRY  pushes them to REGISTRY/{pytorch-operator,mnist-trainer}:TAG
#   images.sh tag IMAGE      prints TAG, which is made of the image's id: unchanged image, same TAG
# Does little when nothing changed.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cluster=$PTO_ROOT/tests/cluster/cluster.sh

NeedBuildah() {
  [ "$(id -u)" = 0 ] || Die "buildah needs root here; or build the images with docker, as docker/*.Dockerfile say"
  command -v buildah >/dev/null || Die "buildah is missing; run tools/deps.sh"
  . "$PTO_ROOT/tools/buildah.sh"
}

Tag() { echo "build-$(cut -c1-12 "$PTO_CACHE/images/$1.id")"; }

Build() {  # image what
  local image=$1 what=$2 id archive=$PTO_CACHE/images/$1.tar
  "$PTO_ROOT/tools/image_files.sh" "$what" "$PTO_ROOT/build/release/bin" "$PTO_ROOT/build/image/$what"
  Buildah bud -q --isolation chroot --pull-never --layers --format docker \
    -f "$PTO_ROOT/docker/$what.Dockerfile" --target prebuilt -t "localhost/$image:latest" "$PTO_ROOT" \
    >/dev/null || Die "buildah could not build docker/$what.Dockerfile (see above)"
  id=$(Buildah inspect --type image -f '{{.FromImageID}}' "localhost/$image:latest")
  if [ ! -e "$archive" ] || [ "$(cat "$PTO_CACHE/images/$image.id" 2>/dev/null)" != "$id" ]; then
    rm -f "$archive"
    Buildah push -q "localhost/$image:latest" \
      "docker-archive:$archive:docker.io/library/$image:build-${id:0:12}"
    echo "$id" >"$PTO_CACHE/images/$image.id"
  fi
  echo "$image:$(Tag "$image")"
}

# The node's copy is known by its tag; older builds of the image are let go.
Import() {  # image
  local want have
  want=docker.io/library/$1:$(Tag "$1")
  have=$("$cluster" ctr images ls -q | grep "^docker.io/library/$1:build-" || true)
  grep -qxF "$want" <<<"$have" || "$cluster" ctr images import "$PTO_CACHE/images/$1.tar"
  "$cluster" ctr images rm "localhost/$1:latest" >/dev/null 2>&1 || true  # buildah's own name for it
  "$cluster" ctr images tag --force "$want" "docker.io/library/$1:latest" >/dev/null
  for have in $have; do
    [ "$have" = "$want" ] || "$cluster" ctr images rm "$have" >/dev/null
  done
}

Push() {  # image registry
  Buildah push -q "localhost/$1:latest" "docker://$2/$1:$(Tag "$1")" ||
    Die "could not push to $2; log in first: buildah login ${2%%/*}"
}

case ${1:-} in
  build)
    NeedBuildah
    "$PTO_ROOT/tools/base_image.sh"
    Build pytorch-operator operator
    Build mnist-trainer trainer
    ;;
  import)
    Import pytorch-operator
    Import mnist-trainer
    ;;
  push)
    [ $# = 2 ] || Die "usage: images.sh push REGISTRY"
    NeedBuildah
    Push pytorch-operator "$2"
    Push mnist-trainer "$2"
    ;;
  tag) Tag "$2" ;;
  *) Die "usage: images.sh build | import | push REGISTRY | tag IMAGE" ;;
esac
