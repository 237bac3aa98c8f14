# The operator's image: from scratch, with the program, the shared objects that it loads and their
# licence notes. Build it from the root of the tree:
#
#   docker build -f docker/operator.Dockerfile -t pytorch-operator .
#
# compiles inside the image's own build stage and needs nothing but Docker. On a Debian 12 host that
# has built build/release already, the same image comes without compiling twice:
#
#   tools/image_files.sh operator build/release/bin build/image/operator
#   docker build -f docker/operator.Dockerfile --target prebuilt -t pytorch-operator .

FROM scratch AS prebuilt
COPY build/image/operator/ /
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["/usr/local/bin/pytorch-operator"]

FROM docker.io/library/debian:bookworm-slim AS build
ENV PTO_CACHE=/cache
WORKDIR /src
COPY tools/ tools/
RUN tools/deps.sh build
COPY . .
RUN cmake --preset release -DBUILD_TRAINER=OFF -DBUILD_TESTING=OFF \
 && cmake --build --preset release --target pytorch-operator \
 && tools/image_files.sh operator build/release/bin /out

FROM scratch AS operator
COPY --from=build /out/ /
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["/usr/local/bin/pytorch-operator"]
