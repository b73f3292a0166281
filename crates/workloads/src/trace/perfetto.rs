//! Recordings by Perfetto (`.pftrace`): packets carry the kernel's events in bundles of one CPU each. Events are whole,
//! or in the compact form, where each switch and waking takes one number in each of several columns. Names and tags are
//! those of Perfetto's published schema (protos/perfetto/trace, as of v52).

use super::event::{Context, Event, Handler, NO_VECTOR, Recorded, UNNAMED, What, Who, context_by_bits, left_by_bits};
use super::wire::{Broken, Fields, packed};
use super::{TraceError, backwards};
use units::Ns;

/// task.h: CLONE_THREAD.
const CLONE_THREAD: u64 = 0x1_0000;

/// Reads all packets; a truncated last one is left out, and the recording is marked as cut.
pub(super) fn read(bytes: &[u8], recorded: &mut Recorded) -> Result<(), TraceError> {
    let mut trace = Fields::of(bytes);
    loop {
        let at = bytes.len() - trace.left();
        match trace.next() {
            Ok(None) => return Ok(()),
            Ok(Some((1, packet))) => self::packet(packet.bytes(), recorded).map_err(|error| error.at_byte(at))?,
            Ok(Some(_)) => recorded.unreadable += 1,
            // The file ends within a packet. If it began well, this is where writing stopped.
            Err(Broken) if !recorded.events.is_empty() => {
                recorded.unreadable += 1;
                recorded.cut = true;
                return Ok(());
            }
            Err(Broken) => return Err(Odd::Broken.at_byte(at)),
        }
    }
}

enum Odd {
    Broken,
    Backwards { cpu: u32, from: Ns, to: Ns },
    Compressed,
}

impl From<Broken> for Odd {
    fn from(_: Broken) -> Odd {
        Odd::Broken
    }
}

impl Odd {
    fn at_byte(self, at: usize) -> TraceError {
        match self {
            Odd::Broken => TraceError::whole(
                format!("a packet at byte {at} that is no Perfetto packet"),
                "a Perfetto trace (.pftrace), or text as trace-cmd report or perf script print it",
            ),
            Odd::Backwards { cpu, from, to } => {
                let mut error = backwards(cpu, from, to);
                error.found += &format!(" in the packet at byte {at}");
                error
            }
            Odd::Compressed => TraceError::whole(
                format!("compressed packets at byte {at}"),
                "a trace recorded without compression_type, or rewritten by `traceconv decompress_packets`",
            ),
        }
    }
}

fn packet(bytes: &[u8], recorded: &mut Recorded) -> Result<(), Odd> {
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => bundle(value.bytes(), recorded)?,
            2 => process_tree(value.bytes(), recorded)?,
            50 | 133 => return Err(Odd::Compressed),
            _ => {}
        }
    }
    Ok(())
}

/// Reads which threads belong to one process.
fn process_tree(bytes: &[u8], recorded: &mut Recorded) -> Result<(), Odd> {
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        if number != 2 {
            continue;
        }
        let (mut tid, mut tgid) = (0, 0);
        let mut thread = Fields::of(value.bytes());
        while let Some((number, value)) = thread.next()? {
            match number {
                1 => tid = value.number() as u32,
                3 => tgid = value.number() as u32,
                _ => {}
            }
        }
        if tid != 0 && tgid != 0 {
            recorded.processes.insert(tid, tgid);
            recorded.processes.insert(tgid, tgid);
        }
    }
    Ok(())
}

fn bundle(bytes: &[u8], recorded: &mut Recorded) -> Result<(), Odd> {
    let mut cpu = 0;
    let mut lost = false;
    let mut fields = Fields::of(bytes);
    // The CPU's number may come after its events.
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => cpu = u32::try_from(value.number()).unwrap_or(u32::MAX),
            3 => lost = value.number() != 0,
            _ => {}
        }
    }
    let first = recorded.events.len();
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        match number {
            2 => event(value.bytes(), cpu, recorded)?,
            4 => compact(value.bytes(), cpu, recorded)?,
            _ => {}
        }
    }
    // A bundle may have both whole and compact events.
    recorded.events[first..].sort_by_key(|event| event.time);
    for at in first..recorded.events.len() {
        let to = recorded.events[at].time;
        recorded.passes(cpu, to).map_err(|from| Odd::Backwards { cpu, from, to })?;
    }
    // Events were lost before the bundle's first event.
    if lost && let Some(event) = recorded.events.get(first).copied() {
        recorded.events.insert(first, Event { running: None, what: What::Lost(0), ..event });
    }
    Ok(())
}

fn event(bytes: &[u8], cpu: u32, recorded: &mut Recorded) -> Result<(), Odd> {
    let (mut time, mut running, mut flags, mut what) = (0, None, None, None);
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        let bytes = value.bytes();
        match number {
            1 => time = value.number(),
            2 => running = Some(value.number() as u32),
            5 => flags = Some(value.number()),
            4 => what = Some(switch(bytes, recorded)?),
            17 => what = Some(What::Wakeup(task(bytes, recorded)?)),
            20 => what = Some(What::Waking(task(bytes, recorded)?)),
            114 => what = Some(What::WakeupNew(task(bytes, recorded)?)),
            235 => what = Some(newtask(bytes, recorded)?),
            239 => what = Some(fork(bytes, recorded)?),
            24..=26 => {
                recorded.devices |= number < 26;
                what = Some(softirq(number, bytes)?);
            }
            21 | 22 | 36 | 37 | 553 | 554 | 559 | 560 => {
                match number {
                    553.. => recorded.timers = true,
                    36 | 37 => tells_of_handler(bytes, 2, recorded)?,
                    _ => tells_of_handler(bytes, 1, recorded)?,
                }
                recorded.devices |= matches!(number, 36 | 37);
                let begins = matches!(number, 21 | 36 | 553 | 559);
                what = Some(What::Handler { of: Handler::Interrupt, begins });
            }
            _ => recorded.skip(&name_of(number)),
        }
    }
    let Some(what) = what else { return Ok(()) };
    recorded.flags |= flags.is_some();
    let context = flags.map_or(Context::Task, context_by_bits);
    recorded.events.push(Event { time: Ns(time), cpu, running, running_name: UNNAMED, context, what });
    Ok(())
}

/// The name of an event that is not read, by the number of its message in ftrace_event.proto. Events that recordings of
/// the scheduler contain have the kernel's name.
fn name_of(number: u64) -> String {
    let name = match number {
        11 => "cpu_frequency",
        13 => "cpu_idle",
        237 => "sched_process_exec",
        238 => "sched_process_exit",
        240 => "sched_process_free",
        242 => "sched_process_wait",
        491 => "sched_migrate_task",
        _ => return format!("event {number} of Perfetto's schema"),
    };
    name.to_string()
}

fn softirq(event: u64, bytes: &[u8]) -> Result<What, Broken> {
    let mut vec = 0_u32;
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            vec = u32::try_from(value.number()).unwrap_or(NO_VECTOR);
        }
    }
    let of = Handler::Softirq(vec);
    Ok(if event == 26 { What::Raise(vec) } else { What::Handler { of, begins: event == 24 } })
}

/// Notes a handler named in field `name`: of an interrupt line, or of an interrupt between CPUs.
fn tells_of_handler(bytes: &[u8], name: u64, recorded: &mut Recorded) -> Result<(), Broken> {
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        if number == name {
            recorded.tells_of_handler(&value.text());
        }
    }
    Ok(())
}

/// Names and numbers of up to two tasks, by the tags of `sched_switch`.
fn switch(bytes: &[u8], recorded: &mut Recorded) -> Result<What, Broken> {
    let mut tasks = [(0, UNNAMED, None); 2];
    let mut state = 0;
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        let task = &mut tasks[usize::from(number > 4)];
        match number {
            1 | 5 => task.1 = recorded.name(&value.text()),
            2 | 6 => task.0 = value.number() as u32,
            3 | 7 => task.2 = prio(value.number()),
            4 => state = value.number().cast_signed(),
            _ => {}
        }
    }
    let [prev, next] = tasks.map(|(pid, name, prio)| Who { pid, name, prio, cpu: None });
    Ok(What::Switch { prev: Some(prev), left: left_by_bits(state), next })
}

fn prio(number: u64) -> Option<i32> {
    i32::try_from(number.cast_signed()).ok().filter(|prio| (-1..=140).contains(prio))
}

fn task(bytes: &[u8], recorded: &mut Recorded) -> Result<Who, Broken> {
    let mut who = Who { pid: 0, name: UNNAMED, prio: None, cpu: None };
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => who.name = recorded.name(&value.text()),
            2 => who.pid = value.number() as u32,
            3 => who.prio = prio(value.number()),
            5 => who.cpu = u32::try_from(value.number()).ok(),
            _ => {}
        }
    }
    Ok(who)
}

fn newtask(bytes: &[u8], recorded: &mut Recorded) -> Result<What, Broken> {
    let mut child = Who { pid: 0, name: UNNAMED, prio: None, cpu: None };
    let mut thread = false;
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => child.pid = value.number() as u32,
            2 => child.name = recorded.name(&value.text()),
            3 => thread = value.number() & CLONE_THREAD != 0,
            _ => {}
        }
    }
    Ok(What::Fork { child, thread })
}

fn fork(bytes: &[u8], recorded: &mut Recorded) -> Result<What, Broken> {
    let mut child = Who { pid: 0, name: UNNAMED, prio: None, cpu: None };
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        match number {
            3 => child.name = recorded.name(&value.text()),
            4 => child.pid = value.number() as u32,
            _ => {}
        }
    }
    Ok(What::Fork { child, thread: false })
}

/// FtraceEventBundle.CompactSched: columns of switches (1 to 4 and 6) and of wakings (7 to 12). Times are differences
/// from the previous.
fn compact(bytes: &[u8], cpu: u32, recorded: &mut Recorded) -> Result<(), Odd> {
    let mut names = Vec::new();
    let mut columns: [Vec<u64>; 13] = std::array::from_fn(|_| Vec::new());
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        match number {
            5 => names.push(recorded.name(&value.text())),
            1..=4 | 6..=12 => columns[number as usize].extend(packed(value.bytes())?),
            _ => {}
        }
    }
    let at = |column: &[u64], row: usize| column.get(row).copied().unwrap_or(0);
    let name = |index: u64| names.get(index as usize).copied().unwrap_or(UNNAMED);
    let mut events = Vec::new();
    let mut time = 0_u64;
    for (row, delta) in columns[1].iter().enumerate() {
        time = time.wrapping_add(*delta);
        let (pid, prio) = (at(&columns[3], row) as u32, prio(at(&columns[4], row)));
        let next = Who { pid, name: name(at(&columns[6], row)), prio, cpu: None };
        let left = left_by_bits(at(&columns[2], row).cast_signed());
        let what = What::Switch { prev: None, left, next };
        events.push(Event { time: Ns(time), cpu, running: None, running_name: UNNAMED, context: Context::Task, what });
    }
    time = 0;
    for (row, delta) in columns[7].iter().enumerate() {
        time = time.wrapping_add(*delta);
        let (pid, prio) = (at(&columns[8], row) as u32, prio(at(&columns[10], row)));
        let target = columns[9].get(row).and_then(|&target| u32::try_from(target).ok());
        let what = What::Waking(Who { pid, name: name(at(&columns[11], row)), prio, cpu: target });
        let context = context_by_bits(at(&columns[12], row));
        recorded.flags |= !columns[12].is_empty();
        events.push(Event { time: Ns(time), cpu, running: None, running_name: UNNAMED, context, what });
    }
    // At equal times, a waking comes before the switch.
    events.sort_by_key(|event| (event.time, matches!(event.what, What::Switch { .. })));
    recorded.events.append(&mut events);
    Ok(())
}
