//! Measures with a broker: `topo plan` and a download of the same lists, `topo apply` and an import of the same
//! objects.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::compared::{Way, compare};
use super::run::{TOPO, Taken, run};
use super::support::{Node, Options};
use super::topology::{definitions, requests, shown, spec};

/// A node with a folder for files. Its vhosts are not deleted: with ten thousand queues, a deletion takes minutes,
/// whereas a new node starts in seconds.
pub(crate) struct Stage {
    node: Node,
    folder: tempfile::TempDir,
    rabbitmqadmin: Option<String>,
}

impl Stage {
    pub(crate) fn set() -> Self {
        let node = Node::start(Options::default());
        let rabbitmqadmin = std::env::var("RABBITMQADMIN").ok();
        Self { node, folder: tempfile::tempdir().unwrap(), rabbitmqadmin }
    }

    /// Prints the machine and the versions.
    fn introduce(&self) {
        let program = self.rabbitmqadmin.as_deref().unwrap_or("not there: RABBITMQADMIN says where it is");
        println!("RabbitMQ {}; rabbitmqadmin: {program}", self.node.version());
    }

    /// Creates an empty vhost.
    pub(crate) fn vhost<'a>(&self, name: &'a str) -> &'a str {
        self.node.http().put(&format!("/api/vhosts/{name}"), &json!({})).expect_status(201);
        name
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn topo(&self, words: &[&str]) -> Taken {
        let url = self.node.url();
        let words = [words, &["--url", &url, "--username", "guest"]].concat();
        // The program inherits the password with the rest of the environment.
        run("env", &[&["TOPO_PASSWORD=guest", TOPO], words.as_slice()].concat())
    }

    fn rabbitmqadmin(&self, words: &[&str]) -> Option<Taken> {
        let port = self.node.http_port().to_string();
        let program = self.rabbitmqadmin.as_deref()?;
        let access = ["--host", "127.0.0.1", "--port", &port, "--username", "guest", "--password", "guest"];
        let timeout = ["--timeout", "600", "--non-interactive"];
        Some(run(program, &[&access[..], &timeout, words].concat()))
    }

    fn curl(&self, words: &[&str]) -> Taken {
        run("curl", &[&["--silent", "--show-error", "--user", "guest:guest"], words].concat())
    }

    pub(crate) fn post(&self, vhost: &str, file: &Path) -> Taken {
        let url = format!("{}/api/definitions/{vhost}", self.node.url());
        let body = format!("@{}", file.display());
        let header = "content-type: application/json";
        self.curl(&["--fail", "--request", "POST", "--header", header, "--data-binary", &body, &url])
    }

    /// Sends a request for each object. Requests for objects of one kind are concurrent.
    fn put_each(&self, vhost: &str, queues: usize, concurrency: usize) -> Taken {
        let kinds = requests(&self.node.url(), vhost, queues);
        let parts = kinds
            .iter()
            .enumerate()
            .map(|(index, requests)| self.put(&self.file(&format!("requests-{index}"), requests), concurrency));
        parts.reduce(Taken::and).unwrap()
    }

    /// Sends concurrent requests for the queues.
    pub(crate) fn put_queues(&self, vhost: &str, queues: usize, concurrency: usize) -> Taken {
        let [_, of_queues, _] = requests(&self.node.url(), vhost, queues);
        self.put(&self.file("requests", &of_queues), concurrency)
    }

    fn put(&self, requests: &Path, concurrency: usize) -> Taken {
        let concurrency = concurrency.to_string();
        let words = ["--parallel", "--parallel-immediate", "--parallel-max", &concurrency, "--config"];
        run("curl", &[&["--silent", "--show-error"], &words[..], &[requests.to_str().unwrap()]].concat())
    }

    /// Downloads the lists that a plan needs, concurrently.
    pub(crate) fn download(&self, vhost: &str, of_queues: &str) -> Taken {
        let base = self.node.url();
        let in_vhost = |kind: &str| format!("{base}/api/{kind}/{vhost}");
        let urls = [
            format!("{base}/api/overview"),
            format!("{base}/api/deprecated-features"),
            format!("{base}/api/vhosts?columns=name,description,tags,default_queue_type"),
            in_vhost("queues") + of_queues,
            in_vhost("exchanges"),
            in_vhost("bindings"),
            in_vhost("policies"),
            in_vhost("operator-policies"),
        ];
        let mut words = vec!["--parallel", "--parallel-immediate"];
        for url in &urls {
            words.extend(["--output", "/dev/null", url]);
        }
        self.curl(&words)
    }
}

/// Runs `topo` without a broker.
pub(crate) fn run_topo(words: &[&str]) -> Taken {
    run(TOPO, words)
}

const LISTS: &str = "curl, all lists in parallel";
/// The query of topo's request for queues.
const COLUMNS: &str = "?disable_stats=true&columns=name,durable,auto_delete,exclusive,arguments,internal";

pub(crate) fn plan(sizes: &[usize], rounds: usize) {
    for (index, queues) in sizes.iter().enumerate() {
        let stage = Stage::set();
        if index == 0 {
            stage.introduce();
        }
        let name = stage.vhost("plan");
        let file = stage.file("definitions.json", &definitions(*queues).to_string());
        stage.post(name, &file);
        let whole = stage.file("whole.yaml", &spec(name, *queues));
        // All objects must be created, as in a first apply.
        let first = stage.file("first.yaml", &spec(stage.vhost("empty"), *queues));
        let (whole, first) = (whole.to_str().unwrap(), first.to_str().unwrap());
        println!("{}: plan, compared with the download of the same lists", shown(*queues));
        let mut ways = vec![
            Way { name: LISTS, once: Box::new(|| stage.download(name, "?disable_stats=true")) },
            Way { name: "curl, the very requests of topo", once: Box::new(|| stage.download(name, COLUMNS)) },
            Way { name: "topo plan, no changes", once: Box::new(|| stage.topo(&["plan", whole])) },
            Way { name: "topo plan, all to be made", once: Box::new(|| stage.topo(&["plan", first])) },
        ];
        if stage.rabbitmqadmin.is_some() {
            let export = || {
                let out = stage.folder.path().join("export.json");
                let words = ["--vhost", name, "definitions", "export_from_vhost", "--file", out.to_str().unwrap()];
                stage.rabbitmqadmin(&words).unwrap()
            };
            ways.push(Way { name: "rabbitmqadmin export_from_vhost", once: Box::new(export) });
        }
        compare(ways, rounds, LISTS);
    }
}

pub(crate) fn apply(queues: usize, rounds: usize) {
    let introduced = Stage::set();
    introduced.introduce();
    let has_rabbitmqadmin = introduced.rabbitmqadmin.is_some();
    drop(introduced);
    println!("{}: apply from empty, compared with an import of the same objects", shown(queues));
    // Each run uses a new node.
    let fresh = |once: &dyn Fn(&Stage, &Path) -> Taken| {
        let stage = Stage::set();
        stage.vhost("apply");
        let taken = once(&stage, &stage.file("definitions.json", &definitions(queues).to_string()));
        let bindings = stage.node.http().get("/api/bindings/apply?columns=source").expect_status(200);
        let made = bindings.as_array().unwrap().iter().filter(|binding| binding["source"] != "").count();
        assert_eq!(made, queues, "all is there");
        taken
    };
    let apply = |stage: &Stage, _: &Path| {
        let spec = stage.file("apply.yaml", &spec("apply", queues));
        stage.topo(&["apply", "--yes", "--quiet", spec.to_str().unwrap()])
    };
    let post = |stage: &Stage, file: &Path| stage.post("apply", file);
    // The lower bound: no plan, lock or verification.
    let each = |stage: &Stage, _: &Path| stage.put_each("apply", queues, 16);
    let import = |stage: &Stage, file: &Path| {
        let words = ["--vhost", "apply", "definitions", "import_into_vhost", "--file", file.to_str().unwrap()];
        stage.rabbitmqadmin(&words).unwrap()
    };
    let mut ways = vec![
        Way { name: "POST /api/definitions", once: Box::new(|| fresh(&post)) },
        Way { name: "topo apply", once: Box::new(|| fresh(&apply)) },
        Way { name: "curl, a request each, 16 in parallel", once: Box::new(|| fresh(&each)) },
    ];
    if has_rabbitmqadmin {
        ways.push(Way { name: "rabbitmqadmin import_into_vhost", once: Box::new(|| fresh(&import)) });
    }
    compare(ways, rounds, "POST /api/definitions");
}

/// Measures many small vhosts, each with its own spec.
pub(crate) fn vhosts(rounds: usize) {
    const VHOSTS: usize = 100;
    const QUEUES: usize = 100;
    let stage = Stage::set();
    let folder = stage.folder.path().join("specs");
    std::fs::create_dir(&folder).unwrap();
    stage.introduce();
    for number in 0..VHOSTS {
        let name = format!("many-{number}");
        std::fs::write(folder.join(format!("{name}.yaml")), spec(&name, QUEUES)).unwrap();
    }
    let folder = folder.to_str().unwrap();
    println!("{VHOSTS} vhosts, each with {}", shown(QUEUES));
    let line = |what: &str, taken: Taken| {
        let Taken { time, cpu, .. } = taken;
        let rest = time.saturating_sub(cpu).max(Duration::ZERO);
        println!(
            "  {what:<32} {:>7.2} s, of which {:.2} s are not topo's own; at most {} MiB",
            taken.seconds(),
            rest.as_secs_f64(),
            taken.mib()
        );
    };
    line("topo apply, from empty", stage.topo(&["apply", "--yes", "--quiet", folder]));
    for _ in 0..rounds {
        line("topo plan, no changes", stage.topo(&["plan", folder]));
    }
}
