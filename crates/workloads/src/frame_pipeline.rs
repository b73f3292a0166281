//! ffmpeg-like: the frames of a film pass through stages, each served by one thread or several.
//!
//! A demuxer hands packets to decoder threads in turn. Decoded frames go, in order, to one filter thread, and from
//! there to an encoder: `slices` threads encode one frame together before they begin the next. Every hand-over is a
//! semaphore, and each stage may be `depth` frames ahead of the next. The figure is frames per second. With `realtime`
//! the demuxer keeps the film's pace (25 frames a second), and the figure says whether the other stages keep up.
//!
//! Sizes are guesses for 1080p on a core of 3 GHz: decoding 8 ms, filtering 3 ms, encoding 24 ms in all slices. The
//! data is the frames themselves, and no core's own caches hold one: each stage fetches every line of the frames it
//! passes through once. Absent: lines that motion search fetches twice, and the other stages' tables.

use crate::chance::lognormal;
use crate::{Instance, Parameter, Summary, Values, Workload};
use os::Os;
use os::sync::{SemaphoreId, SyncOp};
use sim::engine::Sample;
use sim::program::{AddressSpace, Op, Outcome, Program, TaskSpec};
use units::{Cycles, Ns, Prng};

const DEMUX: Cycles = Cycles(150_000);
const DECODE: u64 = 24_000_000;
const FILTER: u64 = 9_000_000;
const ENCODE: u64 = 72_000_000;
/// Spread of a frame's work: the logarithm's standard deviation, in thousandths.
const SIGMA_PERMILLE: u64 = 350;
/// Time of one frame of the film.
const FRAME: Ns = Ns(40_000_000);
/// Bytes of a frame: 1920 times 1080 pixels, and a quarter as many samples of each colour.
const FRAME_BYTES: u64 = 1920 * 1080 * 3 / 2;
/// How many frames each stage passes through for one of its own: a decoder the one it predicts from and the one it
/// writes; the filter the decoder's and its own; all slices of the encoder together the filter's, the one they predict
/// from, and the result.
const DECODED: u64 = 2;
const FILTERED: u64 = 2;
const ENCODED: u64 = 3;
/// Bytes of private cache that the other threads use again after a switch (guess, 8 to 64 KiB).
const WORKING_SET: u64 = 16 * 1024;

pub const WORKLOAD: Workload = Workload {
    name: "ffmpeg-like",
    summary: "frames pass through demuxer, decoders, filter and the slices of an encoder",
    parameters: &[
        Parameter { name: "frames", default: 250, range: (1, 1_000_000), unit: "frames", doc: "of the film" },
        Parameter { name: "decoders", default: 4, range: (1, 256), unit: "threads", doc: "frame threads" },
        Parameter { name: "slices", default: 4, range: (1, 256), unit: "threads", doc: "that encode a frame together" },
        Parameter { name: "depth", default: 4, range: (1, 1_000), unit: "frames", doc: "a stage may be ahead" },
        Parameter { name: "realtime", default: 0, range: (0, 1), unit: "bool", doc: "frames come at 25 a second" },
    ],
    key: None,
    operation: "fps",
    rows: &[],
    statistics: Summary::Rate,
    unit: "frames/s",
    per_unit: 1_000,
    decimals: 2,
    build: |values: &Values| {
        Box::new(Film {
            frames: values.get("frames"),
            decoders: values.get("decoders"),
            slices: values.get("slices"),
            depth: values.get("depth"),
            realtime: values.get("realtime") == 1,
        })
    },
};

struct Film {
    frames: u64,
    decoders: u64,
    slices: u64,
    depth: u64,
    realtime: bool,
}

/// One thing that a stage does for each of its frames.
#[derive(Clone, Copy)]
enum Step {
    Take(SemaphoreId),
    Give(SemaphoreId),
    /// Cycles, and whether they vary from frame to frame.
    Work(u64, bool),
    /// Waits until the frame is due.
    OnTime,
}

impl Instance for Film {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        let mut queue = || (os.create_semaphore(), os.create_semaphore());
        // A queue is two semaphores: items, and free slots. Each decoder has one of packets and one of frames; then the
        // filter's.
        let packets: Vec<_> = (0..self.decoders).map(|_| queue()).collect();
        let decoded: Vec<_> = (0..self.decoders).map(|_| queue()).collect();
        let (filtered, room) = queue();
        let slices: Vec<_> = (0..self.slices).map(|_| queue()).collect();
        let mut stages: Vec<Vec<Step>> = Vec::new();
        let turns = |of: &dyn Fn(usize) -> Vec<Step>| (0..self.decoders as usize).map(of).collect::<Vec<_>>();
        let demux = turns(&|decoder| {
            let on_time = self.realtime.then_some(Step::OnTime);
            let (full, free) = packets[decoder];
            on_time.into_iter().chain([Step::Take(free), Step::Work(DEMUX.0, false), Step::Give(full)]).collect()
        });
        let filter = turns(&|decoder| {
            let (full, free) = decoded[decoder];
            vec![Step::Take(full), Step::Give(free), Step::Take(room), Step::Work(FILTER, true), Step::Give(filtered)]
        });
        for (&(packet, packet_room), &(frame, frame_room)) in packets.iter().zip(&decoded) {
            let work = Step::Work(DECODE, true);
            stages.push(vec![
                Step::Take(packet),
                Step::Give(packet_room),
                Step::Take(frame_room),
                work,
                Step::Give(frame),
            ]);
        }
        let mut encode = vec![Step::Take(filtered), Step::Give(room)];
        encode.extend(slices.iter().map(|slice| Step::Give(slice.0)));
        encode.extend(slices.iter().map(|slice| Step::Take(slice.1)));
        for &(begin, done) in &slices {
            stages.push(vec![Step::Take(begin), Step::Work(ENCODE / self.slices, true), Step::Give(done)]);
        }
        let mut chances = (0..).map(|owner| os.chance("frame", owner));
        let mut stage = |comm: &str, data: Data, turns: Vec<Vec<Step>>, frames: u64| {
            let chance = chances.next().expect("there are always more");
            let memory = AddressSpace::Joined(0);
            let stage = Stage { chance, turns, frames, frame: 0, at: 0, began: None, reports: comm == "encoder" };
            let working_set = data.bytes.max(WORKING_SET);
            TaskSpec { memory, working_set, data: data.bytes, lines: data.lines, ..TaskSpec::new(comm, stage) }
        };
        // The slots that are free at the beginning: a thread posts them and ends.
        let spaces = packets.iter().map(|queue| queue.1).chain(decoded.iter().map(|queue| queue.1)).chain([room]);
        let spaces = spaces.flat_map(|room| (0..self.depth).map(move |_| Step::Give(room))).collect();
        let mut specs = vec![stage("main", Data::NONE, vec![spaces], 1)];
        let decodes = Data::of(DECODED * FRAME_BYTES, DECODE);
        let encodes = Data::of(ENCODED * FRAME_BYTES / self.slices, ENCODE / self.slices);
        for (number, steps) in stages.into_iter().enumerate() {
            let decoder = (number as u64) < self.decoders;
            let own = |number: u64| (self.frames + self.decoders - 1 - number) / self.decoders;
            let (comm, data, frames) = match decoder {
                true => ("decoder", decodes, own(number as u64)),
                false => ("slice", encodes, self.frames),
            };
            specs.push(stage(comm, data, vec![steps], frames));
        }
        specs.push(stage("encoder", Data::NONE, vec![encode], self.frames));
        specs.push(stage("filter", Data::of(FILTERED * FRAME_BYTES, FILTER), filter, self.frames));
        specs.push(stage("demuxer", Data::NONE, demux, self.frames));
        specs
    }

    /// Thousandths of a frame per second.
    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        reported.iter().map(|sample| self.frames * 1_000_000_000_000 / sample.value.max(1)).collect()
    }
}

/// What a stage passes through in each turn: bytes, and lines fetched in 1000 cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Data {
    bytes: u64,
    lines: u32,
}

impl Data {
    const NONE: Data = Data { bytes: 0, lines: 0 };

    fn of(bytes: u64, cycles: u64) -> Data {
        Data { bytes, lines: (bytes / 64 * 1_000 / cycles) as u32 }
    }
}

struct Stage {
    chance: Prng,
    /// The steps for each kind of turn, done one after the other and then again from the beginning.
    turns: Vec<Vec<Step>>,
    frames: u64,
    frame: u64,
    at: usize,
    began: Option<Ns>,
    /// Its last frame is the film's last, so it reports the end.
    reports: bool,
}

impl Program for Stage {
    fn next(&mut self, last: Outcome) -> Op {
        let began = *self.began.get_or_insert(last.now);
        loop {
            if self.frame == self.frames {
                let reports = std::mem::take(&mut self.reports);
                return if reports { Op::Report { series: 0, value: (last.now - began).0 } } else { Op::Exit };
            }
            let steps = &self.turns[self.frame as usize % self.turns.len()];
            let Some(&step) = steps.get(self.at) else {
                self.at = 0;
                self.frame += 1;
                continue;
            };
            self.at += 1;
            return match step {
                Step::Take(semaphore) => Op::Sync(SyncOp::SemaphoreWait(semaphore)),
                Step::Give(semaphore) => Op::Sync(SyncOp::SemaphorePost(semaphore)),
                Step::Work(mean, false) => Op::Work(Cycles(mean)),
                Step::Work(mean, true) => Op::Work(Cycles(lognormal(&mut self.chance, mean, SIGMA_PERMILLE))),
                Step::OnTime => Op::SleepUntil(began + Ns(FRAME.0 * self.frame)),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{boot, instance, play, run};
    use sched::scheduler::Scheduler;
    use sched::versions::V4_15;
    use units::Ps;

    fn fps(cpus: usize, parameters: &[(&str, u64)]) -> u64 {
        run("ffmpeg-like", cpus, parameters).rows()[0][0] / 1_000
    }

    #[test]
    fn one_cpu_does_all_stages_one_after_the_other() {
        // 24 + 9 + 72 + 0.15 ms of work for each frame at 1 GHz.
        let fps = fps(1, &[]);
        assert!((9..=10).contains(&fps), "{fps}");
    }

    #[test]
    fn the_slowest_stage_sets_the_pace() {
        // Slices of 18 ms; the longest of the four decides.
        let four = fps(16, &[]);
        assert!((35..=56).contains(&four), "{four}");
        let eight = fps(16, &[("slices", 8)]);
        assert!(eight > four * 5 / 4, "{eight} instead of {four}");
    }

    #[test]
    fn stages_fetch_their_frames_at_the_rate_that_they_work() {
        let lines = |frames: u64, cycles| Data::of(frames * FRAME_BYTES, cycles).lines;
        assert_eq!([lines(DECODED, DECODE), lines(FILTERED, FILTER), lines(ENCODED, ENCODE)], [4, 10, 2]);
        // With a CPU for every thread: frames a second, given the last level cache in MiB and the bytes that memory
        // delivers in a us.
        let fps = |llc: u64, bytes: u64| {
            let mut sim = boot::<true>(16, V4_15, None);
            let prices = &mut sim.sched.arch_mut().prices;
            (prices.lines.llc_hit, prices.lines.memory) = (Ps::from_ns(20), Ps::from_ns(100));
            (prices.llc_bytes, prices.refill_parallel) = (llc << 20, 10);
            prices.memory_ps_per_kib = 1024 * 1_000_000 / bytes;
            play(instance("ffmpeg-like", &[]), sim).rows()[0][0]
        };
        let roomy = fps(1 << 10, 100_000);
        let memory = fps(0, 100_000);
        // Slices set the pace: two lines of 2 or 10 ns in 1000 cycles of 1 ns.
        assert!((10..25).contains(&((roomy - memory) * 1000 / roomy)), "{memory} instead of {roomy}");
        // A frame takes 7 of its size through memory: of 400 MB/s there are 18 in a second.
        let narrow = fps(0, 400);
        assert!((17_000..20_000).contains(&narrow), "{narrow} instead of {roomy}");
    }

    #[test]
    fn a_film_in_its_own_time_comes_at_25_frames_a_second() {
        assert!((24..=25).contains(&fps(16, &[("realtime", 1)])));
    }
}
