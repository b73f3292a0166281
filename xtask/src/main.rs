//! The project's own checks: `cargo xtask test` runs all of them; each other command runs one.

mod bench;
mod fidelity_host;
mod fit;
mod guided;
mod kernel_functions;
mod kernel_map;
mod layers;
mod links;
mod picture;
mod tables;
mod test;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask COMMAND

  test         every check and test there is: format, lints, tidy, map, unit and integration tests
  check        the checks that take seconds: tidy, map, format; .githooks/pre-commit calls it before a commit
  tidy         arrows between rooms, sizes of files and functions, ARCHITECTURE.md against the tree, links between pages
  kernel-map   writes docs/kernel-map.md from the sources (with --check: fails if it would change)
  kernel-functions VERSION=TREE...
               writes xtask/kernel-functions.tsv, the names of each kernel's functions, from source trees
               (--add VERSION=TREE: puts one version into it, or in its place, and leaves the others)
  tables       prints the studies' tables again and compares them with those in docs/studies (minutes; test does the short ones)
  picture      draws docs/studies/recent-used-cpu-picture.txt again, which tables compares, too
  fidelity-host
               calibrates this computer, simulates and measures pipetest and hackbench on it, and prints both (--short: in seconds)
  fit [MACHINE]
               fits a machine's free prices to published columns of the kernel before a change (--write: into its file)
  record-fidelity --kernel VMLINUZ CASE.toml...
               plays cases of fidelity/ on a real kernel in QEMU and writes their recordings (docs/fidelity.md)
  random-cases KERNEL FIRST LAST FOLDER [--changing]
               writes cases that chance chose, to be recorded and compared (docs/fidelity.md)
  count-instructions --kernel VMLINUZ --symbols VMLINUX
               counts what each function of a real kernel executes for a message between two processes, in QEMU (docs/fidelity.md)
  bench        the table of speeds (with a case's name: that case alone; --runs N, default 5;
               --guided: of the profile-guided build)
  guided       builds fairground laid out by a profile of itself, target/guided/release/fairground (docs/speed.md)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["test"] => test::run(&root()),
        ["check"] => test::before_a_commit(&root()),
        ["tidy"] => tidy::run(&root()),
        ["kernel-map"] => kernel_map::write(&root()),
        ["kernel-map", "--check"] => kernel_map::check(&root()),
        ["kernel-functions", "--add", tree] => kernel_functions::write_one(&root(), tree),
        ["kernel-functions", trees @ ..] if !trees.is_empty() => kernel_functions::write(&root(), trees),
        ["tables"] => tables::check(&root(), tables::STUDIES).and_then(|()| picture::check(&root())),
        ["picture"] => picture::write(&root()),
        ["fidelity-host", rest @ ..] => fidelity_host::run(&root(), rest),
        ["fit", rest @ ..] => fit::run(&root(), rest),
        ["record-fidelity", rest @ ..] => {
            test::cargo(&root(), &[&["run", "-q", "-p", "recorder", "--"], rest].concat())
        }
        ["random-cases", rest @ ..] => {
            test::cargo(&root(), &[&["run", "-q", "-p", "recorder", "--", "random"], rest].concat())
        }
        ["count-instructions", rest @ ..] => {
            test::cargo(&root(), &[&["run", "-q", "-p", "recorder", "--", "count"], rest].concat())
        }
        ["bench", rest @ ..] => bench::run(&root(), rest),
        ["guided"] => guided::build(&root()).map(|folder| println!("{}", folder.join("fairground").display())),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's folder.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_path_buf()
}
