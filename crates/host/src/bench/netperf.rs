//! netperf's TCP tests on the real kernel, over loopback: a stream of messages, and requests with answers one at a time.
//!
//! This process is the side that netperf's figure comes from: the receiver of a stream, or the client of requests. The
//! other side is a separate process. Counting, warm-up and end are those of the simulated workloads; the computation
//! around each call is whatever our loops take.

use super::plumbing::Children;
use super::{Benchmark, Request, number, unknown};
use crate::Error;
use crate::pinning::{Pinned, allowed};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::{Duration, Instant};

pub const TCP: Benchmark = Benchmark {
    name: "netperf-tcp",
    differs: "no control connection; kernels since v6.6 may stall for 200 ms in the beginning, on the tiny windows of buffers=256",
    run: |request| run(request, false),
};

pub const TCP_RR: Benchmark =
    Benchmark { name: "netperf-tcp-rr", differs: "no control connection", run: |request| run(request, true) };

/// How long the other side may be silent before the run is given up.
const PATIENCE: Duration = Duration::from_secs(20);

/// What both sides must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Test {
    answers: bool,
    size: usize,
    buffers: usize,
    /// Warm-up, and measured time.
    warmup: Duration,
    time: Duration,
    /// `None`: anywhere.
    cpu: Option<usize>,
}

impl Test {
    fn prepare(&self, socket: impl AsFd) -> Result<(), Error> {
        if self.buffers == 0 {
            return Ok(());
        }
        let bytes = self.size + self.buffers;
        set_socket_send_buffer_size(&socket, bytes)
            .and_then(|()| set_socket_recv_buffer_size(&socket, bytes))
            .map_err(|error| Error::of_system("setting the socket's buffers", error))
    }

    fn words(&self, port: u16) -> Vec<String> {
        let cpu = self.cpu.map_or("any".to_string(), |cpu| cpu.to_string());
        let [warmup, time] = [self.warmup, self.time].map(|time| time.as_millis().to_string());
        let numbers = [port.to_string(), u8::from(self.answers).to_string(), self.size.to_string()];
        ["netperf".to_string()]
            .into_iter()
            .chain(numbers)
            .chain([self.buffers.to_string(), warmup, time, cpu])
            .collect()
    }

    fn of_words(words: &[&str]) -> Result<(u16, Test), Error> {
        let [port, answers, size, buffers, warmup, time, cpu] = words else { return Err(unknown(words)) };
        let test = Test {
            answers: *answers == "1",
            size: number(size)? as usize,
            buffers: number(buffers)? as usize,
            warmup: Duration::from_millis(number(warmup)?),
            time: Duration::from_millis(number(time)?),
            cpu: if *cpu == "any" { None } else { Some(number(cpu)? as usize) },
        };
        Ok((port.parse().map_err(|_| unknown(words))?, test))
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::of_system("a connection over loopback", error)
}

/// Bits per second, or thousandths of transactions.
fn run(request: &Request, answers: bool) -> Result<Vec<Vec<u64>>, Error> {
    let allowed = allowed()?;
    let [mine, theirs] = match request.get("bind") {
        0 => [None, None],
        1 => [allowed.first(), allowed.first()],
        _ if allowed.len() < 2 => {
            return Err(Error::new(
                "placing netperf's two sides on two CPUs",
                "one CPU that may be used",
                "bind=0 or 1",
            ));
        }
        _ => [allowed.first(), allowed.get(1)],
    };
    let test = Test {
        answers,
        size: request.get("size") as usize,
        buffers: request.get("buffers") as usize,
        warmup: Duration::from_millis(request.get("warmup")),
        time: Duration::from_millis(request.get("milliseconds")),
        cpu: mine.copied(),
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    // An accepted connection inherits the listener's buffers.
    test.prepare(&listener)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let mut children = Children::default();
    let other = Test { cpu: theirs.copied(), ..test };
    children.start(request.starter, &other.words(port), [Stdio::null(), Stdio::null()])?;
    let connection = accept(&listener, &mut children)?;
    connection.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let pinned = test.cpu.map(Pinned::to).transpose()?;
    let rate = if answers { client(connection, &test)? } else { receiver(connection, &test)? };
    drop(pinned);
    children.wait()?;
    if rate == 0 {
        let expected = "a longer time: milliseconds=1000";
        return Err(Error::new("measuring a connection", "nothing that came after the warm-up", expected));
    }
    Ok(vec![vec![rate]])
}

/// Waits for the other side, unless it has ended.
fn accept(listener: &TcpListener, children: &mut Children) -> Result<TcpStream, Error> {
    listener.set_nonblocking(true).map_err(failed)?;
    let since = Instant::now();
    loop {
        match listener.accept() {
            Ok((connection, _)) => {
                connection.set_nonblocking(false).map_err(failed)?;
                return Ok(connection);
            }
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return Err(failed(error)),
            Err(_) if children.one_has_ended()? || since.elapsed() > PATIENCE => {
                return Err(Error::new("waiting for netperf's other side", "nobody", "what it said itself, above"));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// What is counted, and when.
struct Window {
    test: Test,
    begun: Instant,
    since: Option<Instant>,
    until: Instant,
    count: u64,
}

impl Window {
    fn new(test: &Test) -> Window {
        let now = Instant::now();
        Window { test: *test, begun: now, since: None, until: now, count: 0 }
    }

    /// Counts `amount` now; the first thing after the warm-up begins the count. Returns whether the time is over.
    fn count(&mut self, amount: u64) -> bool {
        let now = Instant::now();
        let passed = now.duration_since(self.begun);
        if self.since.is_some() {
            self.count += amount;
            self.until = now;
        } else if passed >= self.test.warmup {
            (self.since, self.until) = (Some(now), now);
        }
        passed >= self.test.warmup + self.test.time
    }

    /// `scale` times what was counted, per second.
    fn rate(&self, scale: u64) -> u64 {
        let time = self.since.map_or(0, |since| self.until.duration_since(since).as_nanos());
        (u128::from(self.count) * u128::from(scale) * 1_000_000_000 / time.max(1)) as u64
    }
}

fn receiver(mut from: TcpStream, test: &Test) -> Result<u64, Error> {
    let mut buffer = vec![0; test.size];
    // Time counts from the first byte on, as the sender counts its own time.
    let first = from.read(&mut buffer).map_err(failed)?;
    let mut window = Window::new(test);
    let mut bytes = first;
    while bytes > 0 {
        window.count(bytes as u64);
        bytes = from.read(&mut buffer).map_err(failed)?;
    }
    Ok(window.rate(8))
}

fn client(mut connection: TcpStream, test: &Test) -> Result<u64, Error> {
    connection.set_nodelay(true).map_err(failed)?;
    let mut message = vec![0; test.size];
    let mut window = Window::new(test);
    loop {
        connection.write_all(&message).and_then(|()| connection.read_exact(&mut message)).map_err(failed)?;
        if window.count(1) {
            return Ok(window.rate(1_000));
        }
    }
}

/// The other process: sends a stream, or answers until the client has gone.
pub fn child(words: &[&str]) -> Result<(), Error> {
    let (port, test) = Test::of_words(words)?;
    let _pinned = test.cpu.map(Pinned::to).transpose()?;
    let connection = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None);
    let connection = connection.map_err(|error| failed(error.into()))?;
    // This comes before connecting, because the first segment announces a window.
    test.prepare(&connection)?;
    let to = std::net::SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    rustix::net::connect(&connection, &to).map_err(|error| failed(error.into()))?;
    let mut connection = TcpStream::from(connection);
    let mut message = vec![0; test.size];
    if test.answers {
        connection.set_nodelay(true).map_err(failed)?;
        while connection.read_exact(&mut message).is_ok() {
            connection.write_all(&message).map_err(failed)?;
        }
        return Ok(());
    }
    let since = Instant::now();
    while since.elapsed() < test.warmup + test.time {
        connection.write_all(&message).map_err(failed)?;
    }
    connection.shutdown(Shutdown::Write).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_are_told_the_same() {
        let test = Test {
            answers: true,
            size: 64,
            buffers: 256,
            warmup: Duration::from_millis(20),
            time: Duration::from_millis(300),
            cpu: Some(3),
        };
        for test in [test, Test { answers: false, cpu: None, ..test }] {
            let words = test.words(4_000);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_eq!(words[0], "netperf");
            assert_eq!(Test::of_words(&words[1..]).unwrap(), (4_000, test));
        }
        assert!(Test::of_words(&["70000", "1", "1", "1", "1", "1", "any"]).is_err());
        assert!(Test::of_words(&["7"]).is_err());
    }

    #[test]
    fn a_rate_is_of_what_comes_after_the_warm_up() {
        let test = Test {
            answers: false,
            size: 1,
            buffers: 0,
            warmup: Duration::ZERO,
            time: Duration::from_secs(3_600),
            cpu: None,
        };
        let mut window = Window::new(&test);
        assert!(!window.count(1_000));
        assert_eq!(window.rate(8), 0);
        std::thread::sleep(Duration::from_millis(2));
        assert!(!window.count(500));
        let rate = window.rate(8);
        assert!(rate > 0 && rate <= 500 * 8 * 500, "{rate}");
        assert!(Window::new(&Test { time: Duration::ZERO, ..test }).count(1));
    }
}
