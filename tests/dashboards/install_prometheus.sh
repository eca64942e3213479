#!/usr/bin/env bash
# Debian's Prometheus (with promtool) and HAProxy, for the tests of what watches the gateways and of
# what stands in front of them; nothing where both are there. Neither is started as a service.
set -euo pipefail

there() { command -v prometheus > /dev/null && command -v promtool > /dev/null && command -v haproxy > /dev/null; }

there && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
  echo "make test-dashboards needs Debian's prometheus and haproxy: apt-get install prometheus haproxy" >&2
  exit 1
fi
echo "Installing Debian's prometheus and haproxy"
export DEBIAN_FRONTEND=noninteractive
# A service of theirs would take a port and outlive the tests.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' > "$policy"
  chmod 755 "$policy"
  trap 'rm -f "$policy"' EXIT
fi
apt-get update -qq
apt-get install -y -qq --no-install-recommends prometheus haproxy > /dev/null
there
