# A container with one static program and nothing else. It serves /srv, which is to be mounted:
#   docker build -t gustnado . && docker run --rm -p 8080:8080 -v "$PWD/public:/srv:ro" gustnado
FROM rust:1.95-alpine AS build
RUN apk add --no-cache gcc linux-headers musl-dev
WORKDIR /source
COPY . .
RUN cargo build --locked --release -p gustnado-cli --no-default-features --features tls \
 && cp target/release/gustnado /gustnado && mkdir /empty

FROM scratch
COPY --from=build /gustnado /gustnado
COPY --from=build /empty /srv
COPY LICENSE-MIT LICENSE-APACHE /
USER 65534:65534
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["/gustnado"]
CMD ["serve", "/srv", "--host", "0.0.0.0"]
