//! A request and its answer over loopback TCP.

use super::{Bench, Findings};
use crate::Error;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

/// Round trips of a burst.
const ROUNDS: u32 = 10;

pub fn run(bench: &Bench) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let failed = |error| Error::of_system("connecting to 127.0.0.1", error);
    let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, 0)) {
        Ok(listener) => listener,
        Err(error) => {
            findings.unseen.push(format!("loopback TCP: {error}"));
            return Ok(findings);
        }
    };
    let mut near = TcpStream::connect(listener.local_addr().map_err(failed)?).map_err(failed)?;
    let (mut far, _) = listener.accept().map_err(failed)?;
    near.set_nodelay(true).and_then(|()| far.set_nodelay(true)).map_err(failed)?;
    let bursts = thread::scope(|scope| {
        scope.spawn(move || {
            let mut byte = [0; 1];
            while far.read_exact(&mut byte).is_ok() && far.write_all(&byte).is_ok() {}
        });
        let mut byte = [0; 1];
        let bursts = bench.effort.repeat(|| {
            let since = Instant::now();
            for _ in 0..ROUNDS {
                if near.write_all(&byte).and_then(|()| near.read_exact(&mut byte)).is_err() {
                    return f64::NAN;
                }
            }
            since.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
        });
        // The other side ends when the connection closes.
        drop(near);
        bursts
    });
    findings.add(
        "tcp_pair",
        "ns",
        &bursts,
        "one byte to and fro over loopback TCP between two threads, wherever they are placed",
    );
    Ok(findings)
}
