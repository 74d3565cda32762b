// The fanout (spec 3.4): where the K edges of highest score end, ties to the lowest node.
#pragma once
#include "common.cuh"

// Words in the order of the doubles they stand for, never 0; -0.0 is 0.0.
__device__ __forceinline__ uint64 in_order(double score) {
    uint64 bits = uint64(__double_as_longlong(score + 0.0));
    return bits >> 63 ? ~bits : bits | (1ull << 63);
}

// An edge is within where its score is above `score`, or equal and its target at most `node`.
struct Cut {
    uint64 score;
    int32 node;

    __device__ bool keeps(uint64 key, int32 target) const { return key > score || (key == score && target <= node); }
};

// The last of the best `count` of a row's keys, bit by bit: every bit splits the keys that agree so far in two, and the
// half that holds the last of the best goes on. So the work does not depend on `count`. keys: 0 for edges that do not
// take part, something else for `candidates` others, more than `count`. All lanes of the warp call it.
__device__ Cut cut_of(const uint64 *keys, const int32 *targets, int64 length, int64 candidates, int64 count) {
    int lane = lane_of_warp();
    // most rows have no more edges than a warp has lanes: their keys are read once
    uint64 own = lane < length ? keys[lane] : 0;
    auto key_of = [&](int64 i) { return i < WARP ? own : i < length ? keys[i] : 0; };
    uint64 prefix = 0;
    for (int bit = 63; bit >= 0; --bit) {
        // All that agree with the bits so far are among the best: no need to tell them apart.
        if (candidates == count) return {prefix == 0 ? 1 : prefix, 0x7fffffff};
        uint64 upper = prefix | (1ull << bit), decided = ~0ull << bit;
        int64 above = 0;
        for (int64 base = 0; base < length; base += WARP) {
            int64 i = base + lane;
            above += __popc(__ballot_sync(ALL_LANES, (key_of(i) & decided) == upper));
        }
        if (above >= count) {
            prefix = upper;
            candidates = above;
        } else {
            count -= above;
            candidates -= above;
        }
    }
    // Of edges of one score the lowest nodes.
    uint32 node = 0;
    for (int bit = 30; bit >= 0; --bit) {
        uint32 decided = ~0u << bit;
        int64 below = 0;
        for (int64 base = 0; base < length; base += WARP) {
            int64 i = base + lane;
            bool low = i < length && key_of(i) == prefix && (uint32(targets[i]) & decided) == node;
            below += __popc(__ballot_sync(ALL_LANES, low));
        }
        if (below < count) {
            count -= below;
            node |= 1u << bit;
        }
    }
    return {prefix, int32(node)};
}
