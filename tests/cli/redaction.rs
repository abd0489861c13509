//! Tests that errors never print a credential. Malformed URLs with a marker as the password are passed through every
//! input that accepts a URL.

use crate::support::{Output, Topo};

const MARKER: &str = "S3CRET";

/// Well-formed and malformed URLs. In each URL, the marker is at the intended position of the password.
const URLS: [&str; 40] = [
    "http://admin:S3CRET@127.0.0.1:1",
    "http://admin:12/S3CRET@127.0.0.1:1",
    "http://admin:12/S3CRET%40x@127.0.0.1:1/rabbit",
    "http://admin:12?S3CRET@127.0.0.1:1",
    "http://admin:12#S3CRET@127.0.0.1:1",
    "http://admin:12\\S3CRET@127.0.0.1:1",
    "http://admin:12%2FS3CRET@127.0.0.1:1",
    "http://admin:a@S3CRET@127.0.0.1:1",
    "http://admin:a@S3CRET/b@127.0.0.1:1",
    "http://admin:S3CRET",
    "http://admin:S3CRET@",
    "http://admin:S3CRET@[",
    "http://admin:S3CRET@[::1",
    "http://admin:S3CRET@127.0.0.1:port",
    "http://admin:S3CRET@127.0.0.1:99999",
    "http://admin:S3C RET S3CRET@[",
    "http://:S3CRET@127.0.0.1:1",
    "http:/admin:S3CRET@127.0.0.1:1",
    "http:admin:S3CRET@127.0.0.1:1",
    "http//admin:S3CRET@127.0.0.1:1",
    "https://admin:S3CRET@127.0.0.1:1/?password=S3CRET",
    "HTTP://admin:12/S3CRET@127.0.0.1:1",
    "ftp://admin:S3CRET@127.0.0.1",
    "admin:S3CRET@127.0.0.1",
    "//admin:S3CRET@127.0.0.1",
    "amqp://admin:S3CRET@127.0.0.1:1",
    "amqps://admin:S3CRET@127.0.0.1:1/vhost",
    "amqp://admin:12/S3CRET@127.0.0.1:1",
    "amqp://admin:S3CRET",
    "amqp://admin%3AS3CRET%40127.0.0.1:1",
    "amqp://admin:12?S3CRET@127.0.0.1:1",
    "http://admin:12/S3CRET%40127.0.0.1:1",
    "http://admin:12 S3CRET@127.0.0.1:1",
    "http://admin:S3CRET S3CRET@127.0.0.1:1/rabbit",
    "http://127.0.0.1:1/rabbit?password=S3CRET",
    "http://127.0.0.1:1/?user=admin&token=S3CRET",
    "amqp://admin:12 S3CRET@127.0.0.1:1",
    "amqp://127.0.0.1:1?password=S3CRET",
    "amqp://admin%3A12%2FS3CRET%40127.0.0.1:1/%2f",
    "amqp://admin:%53%33%43%52%45%54@127.0.0.1:x",
];

fn topo() -> Topo {
    // A short timeout suffices, because no process listens on port 1.
    Topo::offline().spec("queues: {orders: {type: classic}}\n").env("TOPO_TIMEOUT", "200ms")
}

#[track_caller]
fn expect_no_marker(input: &str, output: &Output) {
    let decoded = |text: &str| {
        let bytes = percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
        String::from_utf8_lossy(&bytes).to_lowercase()
    };
    let marker = MARKER.to_lowercase();
    for stream in [&output.stdout, &output.stderr] {
        let shown = stream.to_lowercase();
        assert!(!shown.contains(&marker), "{input}: {output}");
        assert!(!decoded(stream).contains(&marker), "{input}: {output}");
    }
    assert!(output.code != Some(0), "{input}: {output}");
}

/// Starts all runs concurrently, because each run waits between its connection attempts, and then checks each run.
fn expect_no_marker_in(runs: impl IntoIterator<Item = (String, Topo, Vec<String>)>) {
    let runs: Vec<_> = runs
        .into_iter()
        .map(|(input, topo, line)| (topo.start(line.iter().map(String::as_str)), input, topo))
        .collect();
    for (run, input, _folder) in runs {
        expect_no_marker(&input, &run.wait());
    }
}

fn line(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn flags_and_variables_of_urls_print_no_password() {
    for urls in URLS.chunks(8) {
        expect_no_marker_in(urls.iter().flat_map(|url| {
            let local = "http://127.0.0.1:1";
            let host = topo().env("RABBITMQADMIN_TARGET_PORT", "1").env("RABBITMQADMIN_TARGET_HOST", url);
            [
                (format!("--url {url}"), topo(), line(&["plan", "--url", url])),
                (format!("--amqp-url {url}"), topo(), line(&["plan", "--url", local, "--amqp-url", url])),
                (format!("TOPO_URL={url}"), topo().url(url), line(&["apply", "--yes"])),
                (format!("TOPO_AMQP_URL={url}"), topo().url(local).env("TOPO_AMQP_URL", url), line(&["plan"])),
                (format!("BASE_URI={url}"), topo().env("RABBITMQADMIN_BASE_URI", url), line(&["plan"])),
                (format!("TARGET_HOST={url}"), host, line(&["plan"])),
            ]
        }));
    }
}

#[test]
fn rabbitmqadmin_conf_prints_no_password() {
    for urls in URLS.chunks(8) {
        expect_no_marker_in(urls.iter().flat_map(|url| {
            let value = serde_json::json!(url);
            [
                format!("[default]\nbase_uri = {value}\n"),
                format!("[default]\nhostname = {value}\nport = 1\n"),
                format!("[default]\nhostname = \"127.0.0.1\"\npath_prefix = {value}\nport = 1\n"),
                format!("[default]\nhostname = {url}\nport = 1\n"),
            ]
            .map(|conf| (conf.clone(), topo().file(".rabbitmqadmin.conf", &conf), line(&["plan"])))
        }));
    }
}

#[test]
fn proxies_print_no_password() {
    for urls in URLS.chunks(8) {
        expect_no_marker_in(urls.iter().flat_map(|url| {
            [("HTTP_PROXY", "http"), ("http_proxy", "http"), ("ALL_PROXY", "https"), ("HTTPS_PROXY", "https")].map(
                |(variable, scheme)| {
                    let topo = topo().url(&format!("{scheme}://broker.invalid:1")).env(variable, url);
                    (format!("{variable}={url}"), topo, line(&["plan"]))
                },
            )
        }));
    }
}

#[test]
fn urls_in_other_arguments_print_no_password() {
    for url in [
        "http://admin:S3CRET@127.0.0.1:1",
        "http://admin:12/S3CRET@h",
        "amqp://admin:S3CRET@h/vhost",
        "http://admin:12 S3CRET@h",
        "http://admin:S3CRET S3CRET@h",
        "http://admin:12/S3CRET%40h",
        "http://h/specs?password=S3CRET&x=1",
        "http:/admin:S3CRET@h",
    ] {
        let misspelled = format!("--ur={url}");
        let lines: [&[&str]; 20] = [
            &["plan", url],
            &["plan", &misspelled],
            &["plan", "--var-file", url],
            &["plan", "--out", url],
            &["plan", "--config", url, "--node", "x"],
            &["plan", "--password-file", url],
            &["export", "--definitions", url],
            &["lock", "--vhost", url, "--url", "http://127.0.0.1:1"],
            &["plan", "--file", url],
            &["plan", "--transport", url],
            &["plan", "--timeout", url],
            &["plan", "--node", url, "--config", "topology.yaml"],
            &["plan", "--against", url],
            &["plan", "--format", url],
            &["plan", "--vhost", url, "--against", "empty"],
            &["apply", "--plan", url],
            &["apply", "--abort", url],
            &["rules", url],
            &["explain", url],
            &[url],
        ];
        expect_no_marker_in(lines.map(|words| (words.join(" "), topo(), line(words))));
    }
}

#[test]
fn errors_of_a_spec_mask_passwords() {
    let spec = "description: fed by 'amqp://u:S3CRET@h'\nqueues: 'amqps://u:S3CRET@h'\nvhost: [amqp://u:S3CRET@h]\n";
    for format in ["text", "json", "github"] {
        let output = topo().spec(spec).run(["validate", "--format", format]);
        expect_no_marker(format, &output);
    }
    let output = topo().spec(spec).run(["validate"]);
    output.expect_text("queues: 'amqps://u:******@h'").expect_text("found the string \"amqps://u:******@h\"");
    let spec = "version: 1\nvhost: {name: a, description: fed by amqp://u:S3CRET@h}\nqueues: {q: {type: classic}}\n";
    for format in ["text", "json", "github"] {
        let output = topo().spec(spec).run(["validate", "--fail-on", "warning", "--format", format]);
        expect_no_marker(format, &output);
        output.expect_text("secret-in-spec");
    }
}

#[test]
fn errors_of_the_yaml_syntax_print_no_password() {
    let values = ["*S3CRET", "*S3CRET<<x", "&S3CRET x]", "#S3CRET", "|S3CRET", "S3CRET: x: y"];
    let entries = values.map(|value| format!("password: {value}"));
    for entry in entries.iter().map(String::as_str).chain(["password:S3CRET", "password:*S3CRET"]) {
        let block = format!("version: 1\ncluster: {{}}\nusers:\n  deploy:\n    {entry}\n    tags: [monitoring]\n");
        let flow = format!("version: 1\ncluster: {{}}\nusers:\n  deploy: {{{entry}, tags: [monitoring]}}\n");
        for spec in [block, flow] {
            for format in ["text", "json", "github"] {
                let output = topo().spec(&spec).run(["validate", "--format", format]).expect_code(65);
                expect_no_marker(&format!("{spec}{format}"), &output);
            }
        }
    }
}

#[test]
fn values_in_place_of_users_are_masked() {
    let user = "expected a mapping for user `deploy`";
    for (value, error) in [
        ("S3CRET", user),
        ("[S3CRET]", user),
        ("[deploy, {a: S3CRET}]", user),
        ("[{a: b, S3CRET: }]", user),
        ("\n    - S3CRET\n    - a: [b, S3CRET]", user),
        ("{key: [a, {b: S3CRET}]}", "unknown key `key` in a user"),
        ("\n    key:\n      a: b\n      c: S3CRET", "unknown key `key` in a user"),
    ] {
        let spec = format!("version: 1\ncluster: {{}}\nusers:\n  deploy: {value}\n");
        for format in ["text", "json", "github"] {
            let output = topo().spec(&spec).run(["validate", "--format", format]).expect_code(65);
            expect_no_marker(&format!("{value}, {format}"), &output);
            output.expect_text(error);
        }
    }
}

#[test]
fn refused_url_names_the_cause() {
    let output = topo().env("TOPO_AMQP_URL", "amqps://u:S3CRET@h/vhost").run(["plan"]).expect_code(64);
    output
        .expect_error("invalid value 'amqps://h/vhost' for '--amqp-url <URL>'")
        .expect_text("must not contain a path");
    let output = topo().url("http://admin:12/S3CRET@host").run(["plan"]).expect_code(64);
    output.expect_error("the URL must not contain `@` after the host").expect_text("percent-encode");
}
