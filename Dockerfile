# An image that contains only topo: no shell, no libc, and no users except the number below. The CA certificates of Mozilla are
# built in; --ca-cert adds your own.
#
#   docker build --tag topo .
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/work" --volume "$HOME/.local/state:/state" \
#     --env TOPO_URL --env TOPO_USERNAME --env TOPO_PASSWORD topo plan topology.yaml
FROM rust:1.95-bookworm@sha256:6258907abe69656e41cd992e0b705cdcfabcbbe3db374f92ed2d47121282d4a1 AS build
RUN apt-get update && apt-get install --yes --no-install-recommends jq musl-tools
RUN rustup target add "$(uname -m)-unknown-linux-musl"
WORKDIR /topo
# Including .git, for the commit that `topo version` prints.
COPY . .
RUN install -D "$(release/build)" /image/topo && mkdir -m 1777 /image/state /image/work

FROM scratch
COPY --from=build /image /
# The default folder for the backups of an apply. Without a volume, they are lost with the container.
ENV XDG_STATE_HOME=/state
WORKDIR /work
USER 65532:65532
ENTRYPOINT ["/topo"]
