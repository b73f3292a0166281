//! `[java]`: figures that a file does not give are those of the base `linux-x86`.

use super::usual::usual;
use super::{Description, Figure};
use crate::java::Java;

impl Description {
    /// The costs of a Java server. Figures that the file does not give are those of the base `linux-x86`.
    ///
    /// # Panics
    /// If that base does not load, which the tests exclude.
    pub fn java(&self) -> Java {
        let usual = usual("java");
        let figure = |name: &str| -> Figure {
            let name = format!("java.{name}");
            self.figure(&name).unwrap_or_else(|| usual.required(&name)).clone()
        };
        let (cycles, bytes) = (|name| figure(name).cycles(), |name| figure(name).bytes());
        Java {
            task: cycles("task"),
            issue: cycles("issue"),
            select: cycles("select"),
            decode: cycles("decode"),
            scan: cycles("scan"),
            message: bytes("message"),
            allocation: bytes("allocation"),
            young: bytes("young"),
            pause: figure("pause").time(),
            passes: bytes("passes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{builtin, parse};
    use super::*;
    use units::{Cycles, Ps};

    const FIXTURE: &str = include_str!("../../tests/fixtures/two-sockets.toml");

    fn with(java: &str) -> Result<Java, String> {
        let text = format!("{FIXTURE}\n[java]\n{java}");
        parse(&text, "m.toml").map(|machine| machine.java()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_machine_that_says_nothing_of_java_has_the_bases() {
        let usual = usual("java").java();
        assert!(
            usual.task > Cycles(0) && usual.young > usual.allocation && usual.pause > Ps::ZERO && usual.message > 0
        );
        assert_eq!(parse(FIXTURE, "m.toml").unwrap().java(), usual);
        let faster = "task = { value = 40000, unit = \"cycles\", range = [1, 90000], how = \"guess\", source = \"s\" }";
        assert_eq!(with(faster), Ok(Java { task: Cycles(40_000), ..usual }));
    }

    #[test]
    fn every_machine_that_ships_prices_java() {
        for (name, text) in builtin() {
            let machine = parse(text, name).unwrap_or_else(|error| panic!("{error}"));
            assert!(machine.figure("java.task").is_some() && machine.java().task > Cycles(0), "{name}");
        }
    }

    #[test]
    fn a_wrong_price_is_refused_where_it_stands() {
        let refused = |text: &str, expected: &str| {
            let error = with(text).unwrap_err();
            assert!(error.contains(expected) && error.contains("m.toml:"), "{error}");
        };
        refused("puase = 1", "pause");
        refused("pause = 60", "value, unit, source, how and range");
        refused(
            "pause = { value = 60, unit = \"MiB\", range = [1, 90], how = \"guess\", source = \"s\" }",
            "the unit \"MiB\"",
        );
        refused("message = { value = 0, unit = \"B\", range = [0, 1], how = \"guess\", source = \"s\" }", "from 1 to");
    }
}
