# The commands of this project; "make" alone lists them.
# Everything that is downloaded or built outside the tree is kept under $PTO_CACHE.
.DEFAULT_GOAL := help
.PHONY: help deps build images demo demo-down test test-fast test-faults format clean

help:
	@sed -n 's/^## /  /p' $(MAKEFILE_LIST)

## make demo        a PyTorchJob trains MNIST on a real Kubernetes on this machine
##                  (CLUSTER=current: on the cluster of your kubectl context; REGISTRY=host/path)
demo:
	@tools/demo.sh up

## make demo-down   takes the demo's cluster down
demo-down:
	@tools/demo.sh down

## make test        all tests; installs what is missing
test:
	@tests/run

## make test-fast   the tests that need no cluster
test-fast:
	@tests/run --fast

## make test-faults the fault ring: every fault at every write and watch event of some scenarios
##                  (FULL=1: of all; ARGS="--scenario ttl"; see tests/faults/README.md)
test-faults:
	@tools/deps.sh
	@. tools/common.sh && $$PTO_CACHE/venv/bin/python tests/faults/run.py $(if $(FULL),--full) $(ARGS)

## make build       operator and trainer, in build/release/bin
build: deps
	@cmake --preset release
	@cmake --build --preset release

## make images      both images, as archives under $PTO_CACHE/images
images: build
	@tools/datasets.sh
	@tools/images.sh build

## make deps        installs what is missing to build and test
deps:
	@tools/deps.sh
	@. tools/common.sh && PATH=$$PTO_CACHE/venv/bin:$$PATH tools/libtorch.sh

## make format      formats the C++ files
format:
	@git ls-files '*.cpp' '*.h' '*.cu' | xargs clang-format -i

## make clean       deletes build/
clean:
	@rm -rf build
