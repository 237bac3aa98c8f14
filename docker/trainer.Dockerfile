# The trainer's image: Debian slim, the program, the part of LibTorch that it loads on a CPU, and the
# two data sets under /datasets with their licence notes. Build it from the root of the tree:
#
#   docker build -f docker/trainer.Dockerfile -t mnist-trainer .
#
# compiles inside the image's own build stage (which fetches LibTorch's wheel, some 540 MB). On a
# Debian 12 host that has built build/release already, the same image comes without compiling twice:
#
#   tools/image_files.sh trainer build/release/bin build/image/trainer
#   docker build -f docker/trainer.Dockerfile --target prebuilt -t mnist-trainer .

FROM docker.io/library/debian:bookworm-slim AS base
RUN echo 'trainer:x:65532:65532::/workspace:/bin/sh' >>/etc/passwd \
 && echo 'trainer:x:65532:' >>/etc/group \
 && mkdir /workspace && chown 65532:65532 /workspace
WORKDIR /workspace
USER 65532:65532
ENTRYPOINT ["mnist-trainer"]

FROM base AS prebuilt
# What changes least comes first, so that a new program is a small layer.
COPY build/image/trainer/usr/local/lib/ /usr/local/lib/
COPY build/image/trainer/datasets/ /datasets/
COPY build/image/trainer/usr/share/doc/ /usr/share/doc/
COPY build/image/trainer/usr/local/bin/ /usr/local/bin/

FROM docker.io/library/debian:bookworm-slim AS build
ENV PTO_CACHE=/cache
WORKDIR /src
COPY tools/ tools/
COPY tests/requirements.txt tests/
RUN tools/deps.sh build python data
RUN PATH=$PTO_CACHE/venv/bin:$PATH tools/libtorch.sh && tools/datasets.sh
COPY . .
RUN cmake --preset release -DBUILD_OPERATOR=OFF -DBUILD_TESTING=OFF \
 && cmake --build --preset release --target mnist-trainer \
 && tools/image_files.sh trainer build/release/bin /out

FROM base AS trainer
COPY --from=build /out/usr/local/lib/ /usr/local/lib/
COPY --from=build /out/datasets/ /datasets/
COPY --from=build /out/usr/share/doc/ /usr/share/doc/
COPY --from=build /out/usr/local/bin/ /usr/local/bin/
