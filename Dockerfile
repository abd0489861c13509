# topo and nothing else: no shell, no libc, no user but the number below. The certificates of Mozilla's list are built in;
# --ca-cert names one of your own.
#
#   docker build --tag topo .
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/work" --volume "$HOME/.local/state:/state" \
#     --env TOPO_URL --env TOPO_USERNAME --env TOPO_PASSWORD topo plan topology.yaml
FROM rust:1.95-bookworm@sha256:6258907abe69656e41cd992e0b705cdcfabcbbe3db374f92ed2d47121282d4a1 AS build
RUN apt-get update && apt-get install --yes --no-install-recommends jq musl-tools
RUN rustup target add "$(uname -m)-unknown-linux-musl"
WORKDIR /topo
# With .git, for the commit that `topo version` says.
COPY . .
RUN install -D "$(release/build)" /image/topo && mkdir -m 1777 /image/state /image/work

FROM scratch
COPY --from=build /image /
# For backups of what an apply takes away, where no --backup says another place: without a volume they go with the container.
ENV XDG_STATE_HOME=/state
WORKDIR /work
USER 65532:65532
ENTRYPOINT ["/topo"]
