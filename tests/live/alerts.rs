//! Tests the rules of `topo alerts` with a real Prometheus, which scrapes a real node.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::support::{Http, Node, Options, Topo, child, until};

/// Runs Prometheus until its standard input closes, also by the death of the writer.
const RUN: &str = r#"
"$@" & prometheus=$!
trap 'kill -KILL $prometheus 2>/dev/null' EXIT
trap 'exit 143' INT TERM HUP
cat >/dev/null
"#;

/// A running Prometheus. It ends when the value is dropped, or when this process ends.
struct Prometheus {
    script: Child,
    port: u16,
}

impl Prometheus {
    /// Starts Prometheus with a configuration in a folder, in which it also keeps its data.
    fn start(folder: &Path) -> Self {
        let port = free_port();
        let script = child("bash")
            .args(["-c", RUN, "bash", "prometheus"])
            .arg(format!("--config.file={}", folder.join("prometheus.yaml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("bash is installed");
        Self { script, port }
    }

    fn get(&self, path: &str) -> Option<Value> {
        // Until Prometheus listens, a connection is refused.
        std::net::TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let answer = Http::to(&format!("http://127.0.0.1:{}", self.port), "", "").get(path);
        answer.is_success().then(|| answer.expect_status(200))
    }

    /// Returns the names of the firing alerts with their queues and severities, sorted.
    fn firing(&self) -> Vec<String> {
        let alerts = self.get("/api/v1/alerts").map(|answer| answer["data"]["alerts"].clone()).unwrap_or_default();
        let firing = alerts.as_array().into_iter().flatten().filter(|alert| alert["state"] == "firing");
        let line = |alert: &Value| {
            let label = |name: &str| alert["labels"][name].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}", label("alertname"), label("queue"), label("severity"))
        };
        let mut lines: Vec<String> = firing.map(line).collect();
        lines.sort();
        lines
    }

    /// Returns the value of an expression; `None` if it has no value.
    fn value(&self, expression: &str) -> Option<String> {
        let query = expression.replace('{', "%7B").replace('}', "%7D").replace('"', "%22").replace('=', "%3D");
        let answer = self.get(&format!("/api/v1/query?query={query}"))?;
        answer["data"]["result"][0]["value"][1].as_str().map(str::to_owned)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        // The script ends after Prometheus.
        let _ = self.script.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).and_then(|it| it.local_addr()).expect("a free port").port()
}

#[test]
fn alert_fires_when_messages_reach_the_threshold() {
    let port = free_port();
    let options = Options::default().plugin("rabbitmq_prometheus").line("prometheus.tcp.ip = 127.0.0.1");
    let options = options.line(&format!("prometheus.tcp.port = {port}"));
    // The rules for RabbitMQ 3.8 need this line. It does not affect the other paths of newer versions.
    let node = Node::start(options.line("prometheus.return_per_object_metrics = true"));
    let vhost = node.vhost("alerts");
    let spec = "
queues:
  work: {type: classic, deadLetter: one.dead, thresholds: {depth: {warning: 100}}}
deadLetterQueues:
  one.dead: {type: classic, thresholds: {depth: {critical: 1}}}
  many.dead: {type: classic, thresholds: {depth: {critical: 3}, growth: {warning: {messages: 2, within: 1m}}}}
";
    let topo = Topo::new(&vhost).spec(spec);
    topo.run(["apply", "--yes"]).expect_code(0);
    let version = node.version();
    topo.run(["alerts", "--broker-version", version, "--out", "rules.yaml", "--match", "job=\"rabbitmq\""])
        .expect_code(0);
    let rules = topo.read("rules.yaml");
    let path = rules.lines().find_map(|line| line.strip_prefix("#   /metrics")).expect("the path of the metrics");
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let parameters = query.split('&').filter_map(|it| it.split_once('=')).fold(
        (Vec::new(), Vec::new()),
        |(mut families, mut vhosts), (name, value)| {
            if name == "family" {
                families.push(value.to_owned())
            } else {
                vhosts.push(vhost.name().to_owned())
            }
            (families, vhosts)
        },
    );
    let configuration = serde_json::json!({
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [{
            "job_name": "rabbitmq",
            "metrics_path": format!("/metrics{path}"),
            "params": {"family": parameters.0, "vhost": parameters.1},
            "static_configs": [{"targets": [format!("127.0.0.1:{port}")]}],
        }],
    });
    // JSON is YAML.
    topo.write("prometheus.yaml", &configuration.to_string());
    let prometheus = Prometheus::start(&topo.path(""));
    let name = if !node.at_least(3, 10) { "rabbitmq_queue_messages" } else { "rabbitmq_detailed_queue_messages" };
    let value = |suffix: &str, queue: &str| {
        let vhost = vhost.name();
        prometheus.value(&format!("{name}{suffix}{{vhost=\"{vhost}\",queue=\"{queue}\",job=\"rabbitmq\"}}"))
    };
    let until_value = |suffix: &str, queue: &str, count: &str| {
        until(&format!("{name}{suffix} of {queue} to be {count}"), || {
            (value(suffix, queue).as_deref() == Some(count)).then_some(())
        });
    };
    let until_seen = |queue: &str, count: &str| until_value("", queue, count);
    until_seen("one.dead", "0");
    until_seen("many.dead", "0");
    assert_eq!(prometheus.firing(), Vec::<String>::new());

    let amqp = vhost.amqp();
    amqp.publish("", "work", "1");
    amqp.publish("", "many.dead", "1");
    until_seen("work", "1");
    until_seen("many.dead", "1");
    assert_eq!(prometheus.firing(), Vec::<String>::new(), "no threshold is reached");

    // The broker dead-letters the rejected message.
    assert_eq!(amqp.reject("work", 1), 1);
    until("the alert for one message", || (prometheus.firing() == ["TopoDeadLetters one.dead critical"]).then_some(()));
    amqp.publish("", "many.dead", "2");
    until("the alert for the growth", || {
        (prometheus.firing() == ["TopoDeadLetters one.dead critical", "TopoDeadLettersGrow many.dead warning"])
            .then_some(())
    });
    // A message that a consumer holds still counts.
    let held = amqp.hold("one.dead", 1);
    until_value("_ready", "one.dead", "0");
    assert_eq!(value("", "one.dead").as_deref(), Some("1"));
    assert!(prometheus.firing().contains(&"TopoDeadLetters one.dead critical".to_owned()));
    drop(held);
    assert!(amqp.get("one.dead").is_some());
    until("the end of the alert", || (!prometheus.firing().iter().any(|it| it.contains("one.dead"))).then_some(()));
}
