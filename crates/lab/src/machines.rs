//! Which machine the user means: one by name, a file, hwloc's notation, or this computer.

use crate::hash::sha256;
use crate::mistake::{Mistake, Unreadable, Written, excerpt};
use crate::prices;
use machine::description::{
    self, Base, Description, How, builtin, default_prices, prices_of_processor, prices_of_shape, with_prices,
};
use machine::topology::{Numbering, from_hwloc_xml, from_synthetic, from_sysfs, processor_of_hwloc_xml};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

pub use machine::topology::{Distance, Topology};

/// Where texts come from: the caller owns the files, this crate does not.
pub trait Files {
    /// The text of a file, or why it cannot be had.
    fn text(&self, path: &str) -> Result<String, Unreadable>;

    /// The bytes of a file that may not be text, or why they cannot be had.
    fn bytes(&self, path: &str) -> Result<Vec<u8>, Unreadable> {
        self.text(path).map(String::into_bytes)
    }

    /// A file of this computer's sysfs, by its path without the leading slash, if it exists.
    fn sysfs(&self, path: &str) -> Option<String>;
}

/// A machine, and the text that completely describes it.
#[derive(Clone, Debug)]
pub struct Machine {
    pub name: String,
    /// The whole machine file; with `bases`, a stored run is run again from it.
    pub text: Arc<str>,
    /// The files that it extends, the nearest first.
    pub bases: Arc<[Base]>,
    pub description: Description,
    /// The machine that its prices are borrowed from, if it has none of its own.
    pub prices_of: Option<String>,
    /// Assumptions made while reading, which the user should know of.
    pub notices: Vec<String>,
}

impl Machine {
    /// Parses the text of a machine file that extends nothing, or only machine files that ship.
    pub fn parse(text: &str, file: &str) -> Result<Machine, Mistake> {
        Machine::parse_over(text, file, description::bases(text, file, &|_, _| None)?)
    }

    /// Parses the text of a machine file and of the files that it extends, the nearest first.
    pub fn parse_over(text: &str, file: &str, bases: Vec<Base>) -> Result<Machine, Mistake> {
        let description = description::parse_over(text, file, &bases)?;
        prices::check(&description)?;
        let name = description.name().to_string();
        let notices = description.topology().notices().to_vec();
        Ok(Machine { name, text: text.into(), bases: bases.into(), description, prices_of: None, notices })
    }

    /// The SHA-256 of its file and of the files that this extends.
    pub fn sha256(&self) -> String {
        let texts = std::iter::once(&self.text).chain(self.bases.iter().map(|base| &base.text));
        sha256(texts.map(|text| &**text).collect::<Vec<&str>>().join("\0").as_bytes())
    }

    /// A machine that ships.
    pub fn named(name: &str) -> Option<Machine> {
        let (name, text) = builtin().iter().find(|(builtin, _)| *builtin == name)?;
        let machine = Machine::parse(text, &format!("machines/{name}.toml"));
        Some(machine.unwrap_or_else(|mistake| panic!("{mistake}")))
    }

    /// A machine with this topology, which comes from `source` without prices. The prices are those of a machine that
    /// ships, chosen by what is known about the `processor`.
    pub fn of_topology(name: &str, topology: Topology, source: &str, how: How, processor: &Processor) -> Machine {
        let mut notices = topology.notices().to_vec();
        let (prices, why) = processor.prices(&topology);
        let description = with_prices(prices, name, topology, source, how);
        notices.push(format!("{name} has no prices of its own: {}, {why}", description.about().trim_end_matches('.')));
        if let Some(alike) = kinds_alike(&description) {
            notices.push(alike);
        }
        let text = description.to_toml();
        let machine =
            Machine::parse(&text, name).unwrap_or_else(|mistake| panic!("a machine as we write it: {mistake}"));
        Machine { prices_of: Some(prices.to_string()), notices, ..machine }
    }

    /// The machine that `--machine` or an experiment means by `written`; a path is relative to `folder`.
    pub fn choose(written: &Written, folder: &str, files: &dyn Files) -> Result<Machine, Mistake> {
        let text = written.text.trim();
        if text == "host" {
            let topology = host_topology(&|path| files.sysfs(path))?;
            let processor =
                files.text("/proc/cpuinfo").map_or_else(|_| Processor::default(), |info| Processor::of(&info));
            return Ok(Machine::of_topology("host", topology, "sysfs of this computer", How::Measured, &processor));
        }
        if let Some(machine) = Machine::named(text) {
            return Ok(machine);
        }
        if is_path(text) {
            return Machine::load(&within(folder, text), files);
        }
        if text.contains([' ', ':']) || text.starts_with(|c: char| c.is_ascii_digit()) {
            let source = format!("as given: {}", excerpt(text, 200));
            return Ok(Machine::of_topology(
                "synthetic",
                synthetic(written)?,
                &source,
                How::Guess,
                &Processor::default(),
            ));
        }
        let there = within(folder, text);
        if !text.is_empty() && (files.bytes(&there).is_ok() || sysfs_below(&there, files).is_some()) {
            let found = format!("the unknown machine {}, while there is something of that name here", written.quoted());
            return Err(written.mistake(found, format!("./{text} for that")));
        }
        let mistake = written.unknown("machine", names());
        let expected = format!(
            "{}; or host, a file (.toml, or .xml from lstopo), the folder of a copy of /sys, or a topology such as \"pack:2 l3:1 core:12 pu:2\"",
            mistake.expected
        );
        Err(Mistake { expected, ..mistake })
    }

    /// Reads a machine file, hwloc's XML, or a folder that is a copy of /sys or contains one.
    pub fn load(path: &str, files: &dyn Files) -> Result<Machine, Mistake> {
        if let Some(tree) = sysfs_below(path, files) {
            // If a file's bytes are no text, the file is wrong; it must not count as missing.
            let read = |path: &str| files.bytes(&format!("{tree}/{}", path.strip_prefix("sys/")?)).ok();
            let topology = from_sysfs(&|path| Some(String::from_utf8_lossy(&read(path)?).into_owned()))
                .map_err(|error| error.below("sys/", &format!("{tree}/")))?;
            let plain = |name: &String| name.contains(|c: char| c.is_ascii_alphanumeric());
            let name = Some(excerpt(&stem(path), 80)).filter(plain).unwrap_or_else(|| "sysfs".to_string());
            let source = format!("a copy of sysfs, {}", excerpt(path, 200));
            // If everything was copied, /proc lies next to /sys.
            let beside = tree.strip_suffix("/sys").map(|root| format!("{root}/proc/cpuinfo"));
            let info = beside.as_ref().and_then(|beside| files.text(beside).ok());
            let info = info.filter(|info| !info.trim().is_empty());
            let processor = info.as_deref().map_or_else(Processor::default, Processor::of);
            let mut machine = Machine::of_topology(&name, topology, &source, How::Measured, &processor);
            if info.is_none() {
                machine.notices.push(no_cpuinfo(beside.as_deref()));
            }
            return Ok(machine);
        }
        let text = files.text(path).map_err(|mut error| {
            let expected = "a machine file (.toml), what `lstopo --of xml` writes, or the folder of a copy of /sys";
            if error.why == Unreadable::FOLDER {
                error.why = format!("a folder without {CPU_LIST} and without sys/{CPU_LIST}");
            }
            Mistake::file(path, error, expected)
        })?;
        if text.trim_start().starts_with('<') || path.to_ascii_lowercase().ends_with(".xml") {
            let topology = from_hwloc_xml(&text, path)?;
            let source = format!("hwloc's XML, {}", excerpt(path, 200));
            let model = processor_of_hwloc_xml(&text).map(|model| excerpt(model.trim(), 80));
            let processor = Processor { model, virtual_machine: false };
            return Ok(Machine::of_topology(&excerpt(&stem(path), 80), topology, &source, How::Measured, &processor));
        }
        let find = |written: &str, file: &str| {
            let folder = Path::new(file).parent().map_or(String::new(), |folder| match folder.to_str() {
                None | Some("") => String::new(),
                Some(folder) => format!("{folder}/"),
            });
            let path = is_path(written).then(|| within(&folder, written.trim_start_matches("./")))?;
            let text = files.text(&path);
            Some(text.map(|text| Base { file: path, text: text.into() }).map_err(|error| error.why))
        };
        Machine::parse_over(&text, path, description::bases(&text, path, &find)?)
    }

    /// The machine in the JSON of a comparison.
    pub fn to_json(&self) -> Value {
        let topology = self.description.topology();
        json!({
            "name": self.name,
            "about": self.description.about(),
            "cpus": topology.nr_cpus(),
            "cores": topology.cores().len(),
            "last_level_caches": topology.llcs().len(),
            "packages": topology.packages().len(),
            "numa_nodes": topology.nodes().len(),
            "topology": self.description.topology_fact().value,
            "frequency_hz": self.description.fixed_hertz(),
            "sha256": self.sha256(),
        })
    }
}

/// The notice for a topology that distinguishes kinds of CPUs although nothing tells how their speeds differ.
fn kinds_alike(machine: &Description) -> Option<String> {
    let topology = machine.topology();
    let mut speeds = topology.cpus().map(|(_, of)| of.speed);
    let first = speeds.next()?;
    let kinds: Vec<&str> = topology.kinds().iter().map(|kind| kind.name.as_str()).collect();
    let told = kinds.iter().any(|kind| machine.figure(&format!("kind.{kind}.speed")).is_some());
    let alike = kinds.len() > 1 && !told && speeds.all(|speed| speed == first);
    let said = || {
        format!(
            "CPUs of the kinds {} run alike, as nothing tells their speeds: [kind.{}] of a machine file does",
            kinds.join(", "),
            kinds[0]
        )
    };
    alike.then(said)
}

/// The topology of this computer, from its sysfs.
///
/// # Errors
/// What is missing or makes no sense there.
pub fn host_topology(sysfs: &dyn Fn(&str) -> Option<String>) -> Result<Topology, Mistake> {
    Ok(from_sysfs(sysfs).map_err(|error| error.below("", "/"))?)
}

/// The machine that ships with a hypervisor's idle states and interrupts.
const VIRTUAL: &str = "cloud-vm-2";

/// What a computer tells about its processor.
#[derive(Clone, Debug, Default)]
pub struct Processor {
    /// The name that Linux gives it.
    pub model: Option<String>,
    /// Whether a hypervisor runs below.
    pub virtual_machine: bool,
}

impl Processor {
    /// Reads /proc/cpuinfo, where the name is `model name` on x86, `cpu` on POWER and SPARC, and `Hardware` on arm, if
    /// it is there at all.
    fn of(info: &str) -> Processor {
        let lines = || info.lines().filter_map(|line| line.split_once(':'));
        let named =
            |key: &str| lines().find(|(name, _)| name.trim() == key).map(|(_, value)| excerpt(value.trim(), 80));
        let model = ["model name", "cpu", "Hardware"].into_iter().find_map(named).filter(|name| !name.is_empty());
        let flags = lines().find(|(name, _)| name.trim() == "flags").map_or("", |(_, flags)| flags);
        Processor { model, virtual_machine: flags.split_whitespace().any(|flag| flag == "hypervisor") }
    }

    /// The machine that ships whose prices suit this processor, and why.
    fn prices(&self, topology: &Topology) -> (&'static str, String) {
        let model = self.model.as_deref();
        if let Some((model, prices)) = model.and_then(|model| Some((model, prices_of_processor(model, topology)?))) {
            return (prices, format!("which has the same processor, {model}"));
        }
        let (prices, why) = if self.virtual_machine {
            (VIRTUAL, "which is a virtual machine as it is")
        } else if let Some(prices) = prices_of_shape(topology) {
            (prices, "which has as many packages, nodes, last level caches, cores and CPUs")
        } else {
            default_prices(topology)
        };
        let unknown = model.map(|model| format!(": no machine that ships has its processor, {model}"));
        (prices, format!("{why}{}", unknown.unwrap_or_default()))
    }
}

/// The notice for a copy of /sys without /proc/cpuinfo, which would be read at `beside`.
fn no_cpuinfo(beside: Option<&str>) -> String {
    let how = match beside {
        Some(path) => format!("a copy of its /proc/cpuinfo as {}", excerpt(path, 200)),
        None => "a folder with this copy as sys, and with a copy of its /proc/cpuinfo as proc/cpuinfo".to_string(),
    };
    format!("nothing tells the processor of that computer, by which prices are borrowed: {how} would")
}

/// The first file that a copy of /sys is looked for by.
const CPU_LIST: &str = "devices/system/cpu/online";

/// The folder, `path` or one in it, that contains a computer's `devices/system/cpu`.
fn sysfs_below(path: &str, files: &dyn Files) -> Option<String> {
    let folder = path.trim_end_matches('/');
    let lists = ["online", "present", "possible"];
    let has = |tree: &String| lists.iter().any(|list| files.text(&format!("{tree}/devices/system/cpu/{list}")).is_ok());
    [folder.to_string(), format!("{folder}/sys")].into_iter().find(has)
}

/// The machines that ship.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    builtin().iter().map(|(name, _)| *name)
}

fn is_path(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    matches!(text, "." | "..") || text.contains(['/', '\\']) || lower.ends_with(".xml") || lower.ends_with(".toml")
}

/// `path` as seen from `folder`, if it is relative.
pub fn within(folder: &str, path: &str) -> String {
    if Path::new(path).is_absolute() { path.to_string() } else { format!("{folder}{path}") }
}

/// A file's name without folder and extension.
pub fn stem(path: &str) -> String {
    Path::new(path).file_stem().map_or_else(|| path.to_string(), |stem| stem.to_string_lossy().into_owned())
}

/// CPUs are numbered as Linux does on x86, first threads first, unless `indexes=` says otherwise.
fn synthetic(written: &Written) -> Result<Topology, Mistake> {
    let numbering = if written.text.contains("indexes=") { Numbering::AsListed } else { Numbering::LinuxX86 };
    from_synthetic(&written.text, &written.at.input, numbering).map_err(|error| {
        // In a file, the column within the text is not the column within the file.
        let at = if written.at.line.is_some() { written.at.clone() } else { error.at };
        Mistake::new(&at, error.found, error.expected)
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::experiment::{Draft, Purpose};
    use crate::record::Ending;
    use crate::run::{Wanted, run};
    use crate::setup::MachineSetup;
    use machine::topology::Location;
    use std::collections::BTreeMap;

    /// Files in a table.
    #[derive(Default)]
    pub struct Table(pub BTreeMap<&'static str, String>);

    impl Files for Table {
        fn text(&self, path: &str) -> Result<String, Unreadable> {
            self.0.get(path).cloned().ok_or_else(|| "No such file or directory".to_string().into())
        }

        fn sysfs(&self, path: &str) -> Option<String> {
            self.0.get(path).cloned()
        }
    }

    fn choose(text: &str) -> Result<Machine, String> {
        let (_, i7) = builtin().iter().find(|(name, _)| *name == "core-i7-3770").unwrap();
        let files = Table(BTreeMap::from([("dir/own.toml", (*i7).to_string())]));
        Machine::choose(&Written::option("--machine", text), "dir/", &files).map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn every_way_to_name_a_machine() {
        assert_eq!(choose("core-i7-3770").unwrap().description.topology().nr_cpus(), 8);
        assert_eq!(choose("own.toml").unwrap().name, "core-i7-3770");
        let synthetic = choose("pack:2 l3:1 core:12 pu:2").unwrap();
        let topology = synthetic.description.topology();
        assert_eq!(topology.nr_cpus(), 48);
        // The first threads of all cores are numbered first.
        assert!(topology.cores()[0].cpus.contains(units::CpuId(24)));
        // The stored text is complete by itself.
        let again = Machine::parse(&synthetic.text, "x").unwrap();
        assert_eq!(
            crate::prices::prices(&again.description, "v7.2").paths,
            crate::prices::prices(&synthetic.description, "v7.2").paths
        );
        let shape = |topology: &Topology| format!("{:?}", topology.cpu_topology());
        assert_eq!(shape(again.description.topology()), shape(topology));
    }

    #[test]
    fn topologies_say_where_they_are_from() {
        let xml = include_str!("../../machine/tests/fixtures/two-packages-v3.xml").to_string();
        let mut files = Table(BTreeMap::from([("there.xml", xml)]));
        for (file, text) in [
            ("sys/devices/system/cpu/online", "0-1\n"),
            ("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n"),
            ("sys/devices/system/cpu/cpu1/topology/physical_package_id", "1\n"),
            ("copies/big/devices/system/cpu/online", "0-2\n"),
            ("root/sys/devices/system/cpu/online", "0-3\n"),
            ("./devices/system/cpu/online", "0\n"),
        ] {
            files.0.insert(file, text.to_string());
        }
        let of = |text: &str| {
            let machine = Machine::choose(&Written::option("--machine", text), "", &files).unwrap();
            let fact = machine.description.topology_fact().clone();
            (machine.name.clone(), machine.description.topology().nr_cpus(), fact.source, fact.how)
        };
        let expected = |name: &str, cpus, source: &str, how| (name.to_string(), cpus, source.to_string(), how);
        assert_eq!(of("host"), expected("host", 2, "sysfs of this computer", How::Measured));
        assert_eq!(of("there.xml"), expected("there", 8, "hwloc's XML, there.xml", How::Measured));
        assert_eq!(of("core:2 pu:1"), expected("synthetic", 2, "as given: core:2 pu:1", How::Guess));
        // A copy of /sys, and a folder that holds one.
        assert_eq!(of("copies/big/"), expected("big", 3, "a copy of sysfs, copies/big/", How::Measured));
        assert_eq!(of("root/"), expected("root", 4, "a copy of sysfs, root/", How::Measured));
        assert_eq!(of("./"), expected("sysfs", 1, "a copy of sysfs, ./", How::Measured));
        // An error in a copy gives the path to its file. A CPU that does not tell its core is reported.
        files.0.insert("root/sys/devices/system/cpu/cpu1/topology/core_id", "1\n".to_string());
        files.0.insert("root/sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1\n".to_string());
        let load = |files: &Table| Machine::choose(&Written::option("--machine", "root/"), "", files);
        assert_eq!(
            load(&files).unwrap().notices[0],
            "CPUs 0,2-3 do not say what core they are of: each is taken for one"
        );
        // Of a copy without /proc/cpuinfo a note asks for it.
        let last = |files: &Table| load(files).unwrap().notices.last().cloned().unwrap();
        assert!(last(&files).ends_with("a copy of its /proc/cpuinfo as root/proc/cpuinfo would"), "{}", last(&files));
        files.0.insert("root/proc/cpuinfo", "model name\t: Some CPU\n".to_string());
        assert!(last(&files).ends_with("no machine that ships has its processor, Some CPU"), "{}", last(&files));
        files.0.insert("root/sys/devices/system/cpu/online", "0-3-\n".to_string());
        let wrong = load(&files).unwrap_err().to_string();
        assert!(wrong.starts_with("root/sys/devices/system/cpu/online:1:4: found"), "{wrong}");
        let unmarked = Machine::choose(&Written::option("--machine", "root"), "", &files).unwrap_err().to_string();
        let expected =
            "found the unknown machine `root`, while there is something of that name here; expected ./root for that";
        assert!(unmarked.ends_with(expected), "{unmarked}");
    }

    #[test]
    fn this_computer_has_the_prices_of_its_processor() {
        let mut files = Table(BTreeMap::new());
        for (file, text) in [
            ("sys/devices/system/cpu/online", "0-1\n"),
            ("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n"),
            ("sys/devices/system/cpu/cpu1/topology/physical_package_id", "1\n"),
        ] {
            files.0.insert(file, text.to_string());
        }
        let note = |files: &Table| {
            let machine = Machine::choose(&Written::option("--machine", "host"), "", files).unwrap();
            (machine.description.about().to_string(), machine.notices.last().expect("a note").clone())
        };
        let (about, said) = note(&files);
        assert!(about.ends_with(" Prices of skylake-uma-8."), "{about}");
        assert!(
            said.ends_with(
                "Prices of skylake-uma-8, chosen by the number of packages and of CPUs that share a last level cache"
            ),
            "{said}"
        );
        let info = |model: &str| format!("processor\t: 0\nmodel\t\t: 106\nmodel name\t: {model}\ncpu MHz\t\t: 2900\n");
        files.0.insert("/proc/cpuinfo", info("Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz"));
        let (about, said) = note(&files);
        assert!(about.ends_with(" Prices of xeon-platinum-8375c-2s."), "{about}");
        let same = "8375c-2s, which has the same processor, Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz";
        assert!(said.ends_with(same), "{said}");
        files.0.insert("/proc/cpuinfo", info("Some CPU"));
        assert!(note(&files).1.ends_with("cache: no machine that ships has its processor, Some CPU"));
        // A virtual machine leaves idle states and sends interrupts as a virtual machine does, whatever its topology.
        files.0.insert("/proc/cpuinfo", format!("{}flags\t\t: fpu hypervisor lahf_lm\n", info("Some CPU")));
        let (about, said) = note(&files);
        assert!(about.ends_with(" Prices of cloud-vm-2.") && said.contains("which is a virtual machine"), "{said}");
        // For Intel's kinds of cores their names suffice, if the machine that lends its prices has such kinds.
        files.0.insert("/proc/cpuinfo", info("Some CPU"));
        files.0.insert("sys/devices/cpu_core/cpus", "0\n".to_string());
        files.0.insert("sys/devices/cpu_atom/cpus", "1\n".to_string());
        let (about, said) = note(&files);
        assert!(about.ends_with(" Prices of core-i9-12900k."), "{about}");
        assert!(said.contains("12900k, which has CPUs of several kinds too: no machine that ships"), "{said}");
        // A machine of another shape has no prices for these kinds.
        files.0.insert("sys/devices/system/cpu/cpu0/topology/package_cpus_list", "0\n".to_string());
        files.0.insert("sys/devices/system/cpu/cpu1/topology/package_cpus_list", "1\n".to_string());
        let kinds = note(&files).1;
        assert!(kinds.starts_with("CPUs of the kinds ") && kinds.contains(" run alike"), "{kinds}");
        // Once they tell their frequencies, their speeds are known.
        files.0.insert("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "5200000\n".to_string());
        files.0.insert("sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq", "3900000\n".to_string());
        assert!(!note(&files).1.contains(" run alike"));
        // lstopo's output may name the processor, and a topology in hwloc's notation may have the shape of a machine
        // that ships.
        let named = "<object type=\"Package\"><info name=\"CPUModel\" value=\"AMD EPYC 7742 64-Core Processor\"/>";
        assert_eq!(processor_of_hwloc_xml(named), None, "it ends in the middle");
        assert_eq!(
            processor_of_hwloc_xml(&format!("{named}</object>")).as_deref(),
            Some("AMD EPYC 7742 64-Core Processor")
        );
        let rome = Machine::choose(&Written::option("--machine", "pack:2 [numa] l3:16 l2:4 core:1 pu:2"), "", &files);
        assert!(rome.unwrap().notices[0].contains("Prices of epyc-7742-2s-nps1, which has as many packages"));
    }

    #[test]
    fn files_of_users_extend_each_other_and_what_ships() {
        let base = "extends = \"core-i7-3770\"\n[smt]\nspeed = { value = 0.7, unit = \"ratio\", range = [0.6, 0.8], \
                    how = \"measured\", source = \"s\" }\n";
        let own = "name = \"own\"\nextends = \"./base.toml\"\ndescription = \"d\"\n";
        let files = |base: &str| {
            Table(BTreeMap::from([("dir/own.toml", own.to_string()), ("dir/base.toml", base.to_string())]))
        };
        let choose = |base: &str| Machine::choose(&Written::option("--machine", "own.toml"), "dir/", &files(base));
        let machine = choose(base).unwrap();
        assert_eq!(machine.description.smt().pair[0][0], 700);
        let bases: Vec<&str> = machine.bases.iter().map(|base| base.file.as_str()).collect();
        assert_eq!(bases, ["dir/base.toml", "machines/core-i7-3770.toml", "machines/bases/linux-x86.toml"]);
        assert_ne!(machine.sha256(), choose(&base.replace("0.7,", "0.71,")).unwrap().sha256());

        // A record does not need the files.
        let setup = MachineSetup::of(&machine);
        let json = serde_json::to_string(&setup).unwrap();
        let again = serde_json::from_str::<MachineSetup>(&json).unwrap();
        assert_eq!(again, setup);
        let again = again.machine().unwrap();
        assert_eq!(
            format!("{:?}", prices::prices(&again.description, "v7.2")),
            format!("{:?}", prices::prices(&machine.description, "v7.2"))
        );

        let error = choose(&base.replace("speed", "sped")).unwrap_err().to_string();
        assert!(error.starts_with("dir/base.toml:3:1: found the unknown name `sped`"), "{error}");
        let error = choose("extends = \"./none.toml\"").unwrap_err().to_string();
        assert!(error.starts_with("dir/base.toml:1:11: found `./none.toml`: No such file"), "{error}");
    }

    /// Each machine's own prices, under an old kernel and a new one.
    #[test]
    fn every_machine_that_ships_runs() {
        for name in names() {
            for (kernel, workload) in [("v4.16", "pipetest:batches=2"), ("v6.12", "hackbench-pipes:groups=1,loops=2")] {
                let mut draft = Draft::default();
                draft.machine_option(name);
                draft.workload_option(workload).unwrap();
                draft.arm_options(&[kernel.to_string()], true).unwrap();
                let experiment = draft.resolve(Purpose::Single, &Table::default()).unwrap();
                let setup = experiment.setup(&experiment.jobs()[0]);
                let run = run(&setup, Wanted::default(), &Location::of(name)).unwrap().expect("nobody interrupted");
                assert_eq!(run.outcome.end, Ending::Finished, "{name} {workload}");
                assert!(run.outcome.warnings.is_empty(), "{name} {workload}: {:?}", run.outcome.warnings);
            }
        }
    }

    #[test]
    fn machines_that_are_none() {
        for (text, message) in [
            (
                "xeon-e5-2670v3",
                "--machine xeon-e5-2670v3: found the unknown machine `xeon-e5-2670v3`; expected `xeon-e5-2670v3-2s`, perhaps",
            ),
            ("pack:2 core:twelve", "--machine pack:2 core:twelve, column"),
            ("pack:9000", "--machine pack:9000, column"),
            ("there/is/none.xml", "dir/there/is/none.xml: found No such file or directory; expected a machine file"),
            ("host", "/sys/devices/system/cpu"),
        ] {
            let error = choose(text).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
