// RUN: fsdp-opt %s
