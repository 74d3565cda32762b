// Runs a launch on fibers: some blocks are resident at once, and any of their threads may be the next to go on.

#include "shim.hpp"

#include "races.hpp"

#include <csetjmp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <ucontext.h>

extern "C" {
// The linker sets these where a kernel has static shared memory.
extern char __start_shim_shared[] __attribute__((weak));
extern char __stop_shim_shared[] __attribute__((weak));
}

namespace shim {

Place here;

namespace {

constexpr std::size_t STACK_BYTES = 128 * 1024;
constexpr unsigned MOST_RESIDENT = 3;
enum State { RUNNABLE, AT_BLOCK, AT_WARP, DONE };

// Lanes of one mask that meet at a warp operation. Lanes that ask with other masks meet elsewhere, perhaps at once.
struct Meeting {
    unsigned mask = 0, arrived = 0;
    Operation operation = SYNC;
    std::uint64_t values[32];
    int sources[32];
};

struct Block {
    std::int64_t number = 0;
    unsigned living = 0, waiting = 0;
    std::uint32_t barriers = 0;
    std::vector<std::vector<Meeting>> meetings;  // by warp; those that nobody waits at are used again
    std::vector<std::size_t> fibers;
    std::vector<char> dynamic, fixed;  // shared memory; `fixed` while another block is the running one
};

struct Fiber {
    ucontext_t first;
    jmp_buf context;
    std::unique_ptr<char[]> stack;
    bool started = false;
    State state = DONE;
    unsigned thread = 0;
    std::size_t block = 0;
    std::uint64_t answer = 0;
    Clock clock;
};

struct Machine {
    std::vector<std::unique_ptr<Fiber>> fibers;
    std::vector<Block> blocks;
    std::vector<std::size_t> runnable;
    std::size_t current = 0;
    std::size_t resident = SIZE_MAX;  // the block whose static shared memory is in place
    jmp_buf scheduler;
    Body body = nullptr;
    Launch launch = {};
    std::uint64_t random = 1;
    std::string failure;
    Races races;
    std::int64_t accesses = 0;
};
Machine machine;

std::uint64_t draw() {
    machine.random ^= machine.random << 13;
    machine.random ^= machine.random >> 7;
    machine.random ^= machine.random << 17;
    return machine.random * 0x2545F4914F6CDD1Dull >> 16;
}

std::size_t draw(std::size_t below) { return std::size_t(draw() % below); }

void wake(std::size_t fiber) {
    machine.fibers[fiber]->state = RUNNABLE;
    machine.runnable.push_back(fiber);
}

void to_scheduler() {
    if (_setjmp(machine.fibers[machine.current]->context) == 0) _longjmp(machine.scheduler, 1);
}

void wait(State state) {
    machine.fibers[machine.current]->state = state;
    to_scheduler();
}

void fail(const std::string &what) {
    Fiber &fiber = *machine.fibers[machine.current];
    machine.failure = what + " (block " + std::to_string(machine.blocks[fiber.block].number) + ", thread " +
                      std::to_string(fiber.thread) + ")";
    _longjmp(machine.scheduler, 1);
}

void fiber_main() {
    while (true) {
        machine.body(machine.launch.arguments);
        machine.fibers[machine.current]->state = DONE;
        to_scheduler();
    }
}

void swap_shared(std::size_t block) {
    if (machine.resident == block || __start_shim_shared == nullptr) return;
    std::size_t size = std::size_t(__stop_shim_shared - __start_shim_shared);
    if (machine.resident != SIZE_MAX) std::memcpy(machine.blocks[machine.resident].fixed.data(), __start_shim_shared, size);
    // What a block finds in its shared memory at first is nothing to rely on.
    if (machine.blocks[block].fixed.empty()) machine.blocks[block].fixed.assign(size, char(0xA5));
    std::memcpy(__start_shim_shared, machine.blocks[block].fixed.data(), size);
    machine.resident = block;
}

void resume(std::size_t at) {
    Fiber &fiber = *machine.fibers[at];
    machine.current = at;
    swap_shared(fiber.block);
    here.thread = {fiber.thread, 0, 0};
    here.block = {unsigned(machine.blocks[fiber.block].number), 0, 0};
    if (_setjmp(machine.scheduler) != 0) return;
    if (fiber.started) _longjmp(fiber.context, 1);
    fiber.started = true;
    setcontext(&fiber.first);
}

void prepare(Fiber &fiber) {
    fiber.stack.reset(new char[STACK_BYTES]);
    fiber.started = false;
    getcontext(&fiber.first);
    fiber.first.uc_stack.ss_sp = fiber.stack.get();
    fiber.first.uc_stack.ss_size = STACK_BYTES;
    fiber.first.uc_link = nullptr;
    makecontext(&fiber.first, fiber_main, 0);
}

void start(std::size_t place, std::int64_t number, unsigned threads, std::int64_t shared) {
    Block &block = machine.blocks[place];
    if (machine.resident == place) machine.resident = SIZE_MAX;
    block.number = number;
    block.living = threads;
    block.waiting = 0;
    block.barriers = 0;
    block.meetings.assign((threads + 31) / 32, {});
    block.dynamic.assign(std::size_t(shared) + 16, char(0xA5));
    block.fixed.clear();
    block.fibers.clear();
    for (unsigned thread = 0; thread < threads; ++thread) {
        std::size_t at = place * threads + thread;
        while (at >= machine.fibers.size()) {
            machine.fibers.push_back(std::make_unique<Fiber>());
            prepare(*machine.fibers.back());
        }
        machine.fibers[at]->thread = thread;
        machine.fibers[at]->block = place;
        Clock &clock = machine.fibers[at]->clock;
        clock = Clock();
        clock.thread = number * threads + thread;
        clock.block = number;
        clock.warp = thread / 32;
        clock.lane = thread % 32;
        block.fibers.push_back(at);
        wake(at);
    }
}

void open_barrier(Block &block) {
    block.waiting = 0;
    ++block.barriers;
    for (std::size_t at : block.fibers) {
        machine.fibers[at]->clock.barriers = block.barriers;
        ++machine.fibers[at]->clock.now;
        if (machine.fibers[at]->state == AT_BLOCK) wake(at);
    }
}

// Each lane of a mask has now seen what the others did, and what those had seen.
void join_clocks(Block &block, unsigned warp, unsigned mask) {
    std::uint32_t seen[32] = {};
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (!(mask >> lane & 1u)) continue;
        Clock &clock = machine.fibers[block.fibers[warp * 32 + lane]]->clock;
        clock.seen[lane] = clock.now++;
        for (unsigned other = 0; other < 32; ++other) seen[other] = seen[other] < clock.seen[other] ? clock.seen[other] : seen[other];
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (mask >> lane & 1u) std::memcpy(machine.fibers[block.fibers[warp * 32 + lane]]->clock.seen, seen, sizeof seen);
    }
}

void answer(Block &block, unsigned warp, Meeting &meeting) {
    std::uint64_t ballot = 0;
    for (int lane = 0; lane < 32; ++lane) {
        if (meeting.mask >> lane & 1u) ballot |= (meeting.values[lane] & 1u) << lane;
    }
    for (int lane = 0; lane < 32; ++lane) {
        if (!(meeting.mask >> lane & 1u)) continue;
        std::size_t at = block.fibers[warp * 32 + unsigned(lane)];
        int source = meeting.sources[lane];
        bool given = meeting.operation == SHUFFLE && source >= 0 && source < 32 && (meeting.mask >> source & 1u);
        if (meeting.operation == SHUFFLE && !given) {
            fail("a shuffle reads lane " + std::to_string(source) + ", which is not in its mask");
        }
        machine.fibers[at]->answer = meeting.operation == BALLOT ? ballot : given ? meeting.values[source] : 0;
        if (at != machine.current) wake(at);
    }
    join_clocks(block, warp, meeting.mask);
    meeting.arrived = 0;
}

Meeting &meeting_of(std::vector<Meeting> &meetings, unsigned mask) {
    for (Meeting &meeting : meetings) {
        if (meeting.arrived != 0 && meeting.mask == mask) return meeting;
    }
    for (Meeting &meeting : meetings) {
        if (meeting.arrived == 0) return meeting;
    }
    return meetings.emplace_back();
}

void let_others() {
    machine.runnable.push_back(machine.current);
    to_scheduler();
}

bool within(const void *address, const void *memory, std::size_t size) {
    const char *byte = static_cast<const char *>(address), *first = static_cast<const char *>(memory);
    return byte >= first && byte < first + size;
}

// Whether memory is the running thread's own: its stack, its parameters, and where the shim tells it its place.
bool own(const void *address) {
    return within(address, machine.fibers[machine.current]->stack.get(), STACK_BYTES) ||
           within(address, &here, sizeof here) ||
           within(address, machine.launch.arguments, std::size_t(machine.launch.count) * 8);
}

// The parameter whose memory holds these bytes, or else -1.
std::int64_t parameter_of(const void *address, std::size_t size) {
    std::uintptr_t byte = reinterpret_cast<std::uintptr_t>(address);
    const Launch &launch = machine.launch;
    for (std::int64_t i = 0; i < launch.count; ++i) {
        if (launch.arguments[i] <= byte && byte + size <= launch.arguments[i] + launch.sizes[i]) return i;
    }
    return -1;
}

void note(void *address, std::size_t size, Kind kind) {
    if (++machine.accesses > machine.launch.most_accesses) fail("a launch that seems to have no end");
    Fiber &fiber = *machine.fibers[machine.current];
    const std::vector<char> &dynamic = machine.blocks[fiber.block].dynamic;
    bool shared = within(address, __start_shim_shared, std::size_t(__stop_shim_shared - __start_shim_shared)) ||
                  within(address, dynamic.data(), dynamic.size());
    std::int64_t parameter = shared ? -1 : parameter_of(address, size);
    Dl_info constant;
    if (!shared && parameter < 0 && (kind != READ || dladdr(address, &constant) == 0)) {
        fail("an access to memory that is no parameter's");
    }
    if (!machine.launch.find_races) return;
    // Blocks take turns at the same addresses of shared memory.
    std::uintptr_t base = shared ? std::uintptr_t(fiber.clock.block + 1) << 48 : 0;
    std::uintptr_t byte = reinterpret_cast<std::uintptr_t>(address), step = size < 4 ? 1 : 4;
    for (std::uintptr_t word = byte; word < byte + size; word += step) {
        std::string race = machine.races.note(base ^ word, kind, fiber.clock);
        if (race.empty()) continue;
        std::string where = shared ? "shared memory" : "parameter " + std::to_string(parameter);
        fail("a race at " + where + ": this thread " + race);
    }
}

void drop_fibers() {
    machine.fibers.clear();
    machine.runnable.clear();
}

} // namespace

void before_atomic(void *address, std::size_t size) {
    if (draw() % 2 == 0) let_others();
    note(address, size, ATOMIC);
}

// Before a plain access another thread may come too, seldom enough that runs stay fast.
void before_access(void *address, std::size_t size, Kind kind) {
    if (own(address)) return;
    if (draw() % 16 == 0) let_others();
    note(address, size, kind);
}

void *dynamic_shared() {
    Block &block = machine.blocks[machine.fibers[machine.current]->block];
    return reinterpret_cast<void *>((reinterpret_cast<std::uintptr_t>(block.dynamic.data()) + 15) & ~std::uintptr_t(15));
}

void sync_block() {
    Block &block = machine.blocks[machine.fibers[machine.current]->block];
    if (++block.waiting < block.living) return wait(AT_BLOCK);
    open_barrier(block);
    let_others();
}

std::uint64_t sync_warp(Operation operation, unsigned mask, std::uint64_t value, int source) {
    Fiber &fiber = *machine.fibers[machine.current];
    Block &block = machine.blocks[fiber.block];
    unsigned lane = fiber.thread % 32, warp = fiber.thread / 32;
    if (!(mask >> lane & 1u)) fail("a lane calls a warp operation whose mask leaves it out");
    Meeting &meeting = meeting_of(block.meetings[warp], mask);
    if (meeting.arrived != 0 && meeting.operation != operation) fail("lanes of a warp meet at different operations");
    for (unsigned other = 0; other < 32; ++other) {
        if (!(mask >> other & 1u)) continue;
        std::size_t thread = warp * 32 + other;
        if (thread >= block.fibers.size() || machine.fibers[block.fibers[thread]]->state == DONE) {
            fail("a warp operation waits for lane " + std::to_string(other) + ", which has ended or never was");
        }
    }
    meeting.mask = mask;
    meeting.operation = operation;
    meeting.values[lane] = value;
    meeting.sources[lane] = source;
    meeting.arrived |= 1u << lane;
    if (meeting.arrived != mask) {
        wait(AT_WARP);
    } else {
        answer(block, warp, meeting);
        let_others();
    }
    return fiber.answer;
}

const char *run(Body body, const Launch &launch) {
    const std::int64_t grid = launch.grid, block = launch.block, shared = launch.shared;
    machine.body = body;
    machine.launch = launch;
    machine.races.begin();
    machine.accesses = 0;
    machine.random = launch.seed * 0x9E3779B97F4A7C15ull | 1u;
    machine.failure.clear();
    machine.resident = SIZE_MAX;
    machine.runnable.clear();
    here.block_size = {unsigned(block), 1, 1};
    here.grid_size = {unsigned(grid), 1, 1};
    for (int i = 0; i < 4; ++i) draw();

    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < grid; ++i) {
        order.push_back(i);
        std::swap(order[std::size_t(i)], order[draw(std::size_t(i) + 1)]);
    }
    std::size_t next = 0;
    machine.blocks.assign(1 + draw(MOST_RESIDENT), Block());
    for (std::size_t place = 0; place < machine.blocks.size() && next < order.size(); ++place) {
        start(place, order[next++], unsigned(block), shared);
    }
    while (!machine.runnable.empty()) {
        std::size_t chosen = draw(machine.runnable.size());
        std::swap(machine.runnable[chosen], machine.runnable.back());
        std::size_t at = machine.runnable.back();
        machine.runnable.pop_back();
        resume(at);
        if (!machine.failure.empty()) break;
        if (machine.fibers[at]->state != DONE) continue;
        std::size_t place = machine.fibers[at]->block;
        Block &its = machine.blocks[place];
        --its.living;
        if (its.living > 0 && its.waiting == its.living) open_barrier(its);
        if (its.living == 0 && next < order.size()) start(place, order[next++], unsigned(block), shared);
    }
    for (const Block &its : machine.blocks) {
        if (machine.failure.empty() && its.living > 0) {
            machine.failure = "threads of block " + std::to_string(its.number) + " wait for others that never come";
        }
    }
    if (!machine.failure.empty()) drop_fibers();
    return machine.failure.empty() ? nullptr : machine.failure.c_str();
}

} // namespace shim

// Kernels are compiled with -fsanitize=thread, but not linked with its runtime: what the compiler calls before every
// access to memory is another place to switch threads. So a read, a change and a write are never one step.
extern "C" {
#define SHIM_ACCESS(name, size, kind)                                                                                 \
    void __tsan_##name##size(void *address) { shim::before_access(address, size, shim::kind); }
#define SHIM_ACCESSES(name, kind)                                                                                     \
    SHIM_ACCESS(name, 1, kind)                                                                                        \
    SHIM_ACCESS(name, 2, kind)                                                                                        \
    SHIM_ACCESS(name, 4, kind)                                                                                        \
    SHIM_ACCESS(name, 8, kind)                                                                                        \
    SHIM_ACCESS(name, 16, kind)
SHIM_ACCESSES(read, READ)
SHIM_ACCESSES(write, WRITE)
SHIM_ACCESSES(unaligned_read, READ)
SHIM_ACCESSES(unaligned_write, WRITE)
// Volatile words are those that others are known to change meanwhile.
SHIM_ACCESSES(volatile_read, ATOMIC)
SHIM_ACCESSES(volatile_write, ATOMIC)
void __tsan_read_range(void *address, std::size_t size) { shim::before_access(address, size, shim::READ); }
void __tsan_write_range(void *address, std::size_t size) { shim::before_access(address, size, shim::WRITE); }
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
}
