// Pairs of cells that oppose each other by claim or stance and are near (spec 6.2): candidates, rule and cosine in one go.
#include "score.cuh"

struct Sides {
    const int32 *subjects, *values;  // -1: no claim
    const float *stances;            // NaN: none
    double least_stance;

    __device__ bool oppose(int64 a, int64 b) const {
        bool claims = subjects[a] >= 0 && subjects[a] == subjects[b] && values[a] >= 0 && values[b] >= 0;
        if (claims && values[a] != values[b]) return true;
        double one = widened(stances[a]), other = widened(stances[b]);
        return (one >= least_stance && other <= -least_stance) || (one <= -least_stance && other >= least_stance);
    }
};

// Without the lowest `count` set bits.
__device__ __forceinline__ uint32 without_lowest(uint32 bits, int64 count) {
    for (int64 i = 0; i < count; ++i) bits &= bits - 1u;
    return bits;
}

// Whether left[i] and right[i] oppose each other (asked only where `by_rule`) with a cosine of at least `least`; their
// cosine where they do. A lane judges a pair by rule; of those that pass, groups of `lanes` lanes compute the cosines.
extern "C" __global__ void opposing(const int4 *images, const double *lengths, int64 chunks, int64 lanes, int64 by_rule,
                                    const int32 *subjects, const int32 *values, const float *stances,
                                    double least_stance, const int32 *left, const int32 *right, int64 count,
                                    double least, int8 *opposed, double *cosines) {
    Images rows{images, chunks};
    Sides sides{subjects, values, stances, least_stance};
    int64 groups = WARP / lanes, group = lane_of_warp() / lanes, lane = lane_of_warp() % lanes;
    for (int64 warp = first_warp(); warp * WARP < count; warp += all_warps()) {
        int64 base = warp * WARP, own = base + lane_of_warp();
        bool near = own < count && (!by_rule || sides.oppose(left[own], right[own]));
        if (own < count && !near) opposed[own] = 0;
        uint32 asked = __ballot_sync(ALL_LANES, near), mine = without_lowest(asked, group);
        for (int64 done = 0; done < __popc(asked); done += groups) {
            bool given = mine != 0;
            int64 i = base + (given ? __ffs(int(mine)) - 1 : 0);
            int64 a = given ? left[i] : 0, b = given ? right[i] : 0;
            int dot = sum_over_lanes(given ? dot_part(rows.row(b), rows.row(a), chunks, lane, lanes) : 0, lanes);
            if (given && lane == 0) {
                cosines[i] = double(dot) / (lengths[a] * lengths[b]);
                opposed[i] = cosines[i] >= least;
            }
            mine = without_lowest(mine, groups);
        }
    }
}
