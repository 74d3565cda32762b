// The lowest member of each node's connected component (spec 2.6).
#include "components.cuh"

// Join the ends of each of `count` edges. parents[node] is `node` at first, and afterwards a tree for each component.
extern "C" __global__ void components(const int32 *left, const int32 *right, int64 count, int32 *parents) {
    for (int64 i = first_item(); i < count; i += all_threads()) join(parents, left[i], right[i]);
}

// Hang each of `count` nodes on its root. Each writes to its own place only: halving a path would undo what others did.
extern "C" __global__ void flatten(int32 *parents, int64 count) {
    for (int64 node = first_item(); node < count; node += all_threads()) {
        volatile int32 *seen_parents = parents;
        int32 root = seen_parents[node];
        for (int32 above = seen_parents[root]; above != root; above = seen_parents[root]) root = above;
        seen_parents[node] = root;
    }
}
