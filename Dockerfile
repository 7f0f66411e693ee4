# The compiler on Debian 12 with a C compiler beside it. It is made of the package, which `tools/release deb` writes:
#
#   tools/release deb
#   docker build -t tfaot .
#   docker run --rm -v "$PWD:/work" -u "$(id -u):$(id -g)" tfaot compile model.pb -o out
#
# tools/test_release does the same in a chroot.
FROM debian:12-slim
COPY target/dist/tfaot_*_amd64.deb /tmp/tfaot.deb
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/tfaot.deb gcc libc6-dev && rm -rf /var/lib/apt/lists/* /tmp/tfaot.deb
WORKDIR /work
ENTRYPOINT ["tfaot"]
