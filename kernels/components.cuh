// Connected components by union-find without locks (ECL-CC: Jaiganesh & Burtscher 2018). parents[node] is never above
// node, and a root is hung below a lower one only, so each tree's root is its lowest member, whatever the order.
#pragma once
#include "common.cuh"

// The root of a node's tree; the path to it is halved. Other threads may do the same: what they write is an ancestor too.
__device__ __forceinline__ int32 root_of(int32 *parents, int32 node) {
    volatile int32 *seen_parents = parents;
    int32 parent = seen_parents[node];
    while (parent != node) {
        int32 above = seen_parents[parent];
        if (above != parent) seen_parents[node] = above;
        node = parent;
        parent = above;
    }
    return node;
}

// Make one tree of the trees of two nodes.
__device__ __forceinline__ void join(int32 *parents, int32 a, int32 b) {
    while (true) {
        a = root_of(parents, a);
        b = root_of(parents, b);
        if (a == b) return;
        int32 low = min(a, b), high = max(a, b);
        if (atomicCAS(&parents[high], high, low) == high) return;
    }
}
