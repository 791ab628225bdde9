# The program on a small Debian; nothing of the build is in the image.
FROM rust:1.95-slim-bookworm AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package tidings

FROM debian:bookworm-slim
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 8484 --create-home --home-dir /data tidings
COPY --from=build /src/target/release/tidings /usr/bin/tidings
USER 8484
WORKDIR /data
VOLUME /data
EXPOSE 8484
ENTRYPOINT ["/usr/bin/tidings"]
CMD ["--help"]
