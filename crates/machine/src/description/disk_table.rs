//! `[disk]`: figures that a file does not give are those of the base `linux-x86`.

use super::usual::{BASE, usual};
use super::{Description, Figure};
use crate::disk::{Disk, WriteCache};

impl Description {
    /// The disk. Figures that the file does not give are those of the base `linux-x86`.
    ///
    /// # Panics
    /// If that base does not load, which the tests exclude.
    pub fn disk(&self) -> Disk {
        let usual = usual("disk");
        let figure = |name: &str| -> Figure { self.figure(name).unwrap_or_else(|| usual.required(name)).clone() };
        let fact = |name: &str| {
            let fact = self.fact(name).or_else(|| usual.fact(name));
            fact.unwrap_or_else(|| panic!("the base {BASE} lacks {name}")).value.clone()
        };
        Disk {
            write: figure("disk.write").time(),
            ps_per_kib: figure("disk.delivery").ps_per_kib(),
            flush: figure("disk.flush").time(),
            channels: figure("disk.channels").count(),
            cache: match fact("disk.write_cache").as_str() {
                "safe" => WriteCache::Safe,
                "force-unit-access" => WriteCache::ForceUnitAccess,
                _ => WriteCache::FlushOnly,
            },
            one_interrupt: fact("disk.interrupts") == "one-cpu",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{builtin, parse};
    use super::*;
    use units::Ps;

    const FIXTURE: &str = include_str!("../../tests/fixtures/two-sockets.toml");

    fn with(disk: &str) -> Result<Disk, String> {
        let text = format!("{FIXTURE}\n[disk]\n{disk}");
        parse(&text, "m.toml").map(|machine| machine.disk()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_machine_without_a_disk_has_the_bases() {
        let usual = usual("disk").disk();
        assert!(usual.write > Ps::ZERO && usual.flush > Ps::ZERO && usual.channels > 0);
        assert_eq!(parse(FIXTURE, "m.toml").unwrap().disk(), usual);
        let slow = "write = { value = 5, unit = \"ms\", range = [1, 9], how = \"guess\", source = \"s\" }";
        assert_eq!(with(slow), Ok(Disk { write: Ps::from_ns(5_000_000), ..usual }));
        let nvme = "write_cache = { value = \"force-unit-access\", how = \"guess\", source = \"s\" }\n\
                    interrupts = { value = \"submitter\", how = \"guess\", source = \"s\" }";
        assert_eq!(with(nvme), Ok(Disk { cache: WriteCache::ForceUnitAccess, one_interrupt: false, ..usual }));
    }

    #[test]
    fn every_machine_that_ships_has_a_disk() {
        for (name, text) in builtin() {
            let machine = parse(text, name).unwrap_or_else(|error| panic!("{error}"));
            for figure in ["disk.write", "disk.delivery", "disk.flush", "disk.channels"] {
                assert!(machine.figure(figure).is_some(), "{name} lacks {figure}");
            }
            assert!(machine.fact("disk.write_cache").is_some() && machine.fact("disk.interrupts").is_some(), "{name}");
        }
    }

    #[test]
    fn a_wrong_disk_is_refused_where_it_stands() {
        let refused = |text: &str, expected: &str| {
            let error = with(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert!(error.contains("m.toml:"), "{error}");
        };
        refused("flsh = 1", "flush");
        refused("flush = 60", "value, unit, source, how and range");
        refused(
            "flush = { value = 60, unit = \"MHz\", range = [1, 90], how = \"guess\", source = \"s\" }",
            "the unit \"MHz\"",
        );
        refused(
            "channels = { value = 0, unit = \"count\", range = [0, 1], how = \"guess\", source = \"s\" }",
            "from 1 to 1024",
        );
        refused(
            "write_cache = { value = \"none\", how = \"guess\", source = \"s\" }",
            "one of safe, force-unit-access, flush-only",
        );
    }
}
