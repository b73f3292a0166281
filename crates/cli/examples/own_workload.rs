//! A workload of one's own: clients ask one server, and wait for its answers.
//!
//! cargo run --release --example own_workload -- compare --machine skylake-uma-8 --workload counter:clients=1+4+16 --arm v4.15 --arm v6.12
use fairground::{Instance, Ns, Op, Os, Parameter, Sample, Steps, Summary, SyncOp, TaskSpec, Workload, timed};
use std::iter::once;

/// What the command needs to know about it. Samples are nanoseconds, of which a million make the ms of its table.
pub const COUNTER: Workload = Workload {
    name: "counter",
    summary: "clients ask one server, and wait for its answers",
    parameters: &[
        Parameter { name: "clients", default: 4, range: (1, 1_000), unit: "clients", doc: "that ask" },
        Parameter { name: "requests", default: 200, range: (1, 100_000), unit: "requests", doc: "of each client" },
    ],
    key: Some("clients"),
    operation: "Time",
    rows: &[],
    statistics: Summary::Time,
    unit: "ms",
    per_unit: 1_000_000,
    decimals: 3,
    build: |values| Box::new(Counter { clients: values.get("clients"), requests: values.get("requests") }),
};

/// One run of the workload.
struct Counter {
    clients: u64,
    requests: u64,
}

impl Instance for Counter {
    /// The tasks that exist at the start: one, which starts the others and takes the time.
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        let asked = os.create_semaphore();
        let answered: Vec<_> = (0..self.clients).map(|_| os.create_semaphore()).collect();
        let turns: Vec<_> = (0..self.requests).flat_map(|_| answered.clone()).collect();
        let serve = turns.into_iter().flat_map(move |client| {
            let (wait, post) = (SyncOp::SemaphoreWait(asked), SyncOp::SemaphorePost(client));
            [Op::Sync(wait), Op::WorkFor(Ns::from_us(20)), Op::Sync(post)]
        });
        let requests = self.requests;
        let client = move |answer| {
            let (ask, wait) = (SyncOp::SemaphorePost(asked), SyncOp::SemaphoreWait(answer));
            let ask = (0..requests).flat_map(move |_| [Op::Sync(ask), Op::Sync(wait), Op::WorkFor(Ns::from_us(50))]);
            TaskSpec::new("client", Steps(ask))
        };
        vec![timed(once(TaskSpec::new("server", Steps(serve))).chain(answered.into_iter().map(client)))]
    }

    /// The samples: the time that `timed` reported.
    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        reported.iter().map(|sample| sample.value).collect()
    }
}

fn main() -> std::process::ExitCode {
    fairground::main_with(&[COUNTER])
}
