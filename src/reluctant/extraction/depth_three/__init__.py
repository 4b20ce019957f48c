"""Depth three with at most as many first-layer neurons as inputs: first layer, peeled target, top layers."""
