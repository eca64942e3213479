#!/usr/bin/env bash
# Debian's Chromium and a font, for the tests of the console; nothing where both are there.
set -euo pipefail

chromium() { command -v chromium || command -v chromium-browser; }

if chromium > /dev/null && [ "$(fc-list : family 2> /dev/null | wc -l)" -gt 0 ]; then
  exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
  chromium > /dev/null && exit 0
  echo "make test-console needs Debian's chromium: apt-get install chromium fonts-noto-core" >&2
  exit 1
fi
echo "Installing Debian's chromium"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends chromium fonts-noto-core fontconfig > /dev/null
chromium > /dev/null
