//! `topo export` where no broker is needed: definitions files in, files out.

use serde_json::json;

use crate::support::Topo;

fn definitions() -> String {
    let queue = |vhost: &str, name: &str| json!({"name": name, "vhost": vhost, "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "quorum"}});
    let file = json!({
        "rabbit_version": "4.0.5", "vhosts": [{"name": "shop"}, {"name": "/"}], "exchanges": [], "bindings": [], "policies": [],
        "queues": [queue("shop", "orders"), queue("/", "a/b")],
    });
    file.to_string()
}

fn topo() -> Topo {
    Topo::offline().file("definitions.json", &definitions())
}

const FROM: [&str; 3] = ["export", "--definitions", "definitions.json"];
const ROOT: &str = "version: 1\nvhost: /\n\nqueues:\n  a/b: {type: quorum}\n";
const SHOP: &str = "version: 1\nvhost: shop\n\nqueues:\n  orders: {type: quorum}\n";

fn with<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    FROM.iter().chain(flags).copied().collect()
}

#[test]
fn several_vhosts_are_documents_of_one_text() {
    let output = topo().run(FROM).expect_code(0);
    assert_eq!(output.stdout, format!("{ROOT}---\n{SHOP}"));
    let told = "vhost /: 0 exchanges, 1 queue, 0 bindings, 0 policies\nvhost shop: 0 exchanges, 1 queue, 0 bindings, 0 policies\n";
    assert_eq!(output.stderr, told);
    let output = topo().run(with(&["--vhost", "shop", "--quiet"])).expect_code(0);
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), (SHOP, ""));
}

#[test]
fn a_folder_gets_a_file_for_each_vhost_and_a_file_all() {
    let topo = topo();
    topo.run(with(&["--out", "specs"])).expect_code(0).expect_no_result();
    assert_eq!([topo.read("specs/%2F.yaml"), topo.read("specs/shop.yaml")], [ROOT, SHOP]);
    topo.run(with(&["--out", "new/all.yaml"])).expect_code(0).expect_no_result();
    assert_eq!(topo.read("new/all.yaml"), format!("{ROOT}---\n{SHOP}"));
    // What comes out goes in.
    let plan = ["plan", "--against", "definitions.json", "--detailed-exitcode"];
    topo.run(plan.into_iter().chain(["specs"])).expect_code(0).expect_text("No changes");
    topo.run(plan.into_iter().chain(["new/all.yaml"])).expect_code(0).expect_text("No changes");
}

#[test]
fn nothing_is_replaced_without_a_word() {
    let topo = topo().file("specs/shop.yaml", "mine\n");
    let refused = topo.run(with(&["--out", "specs"])).expect_code(64);
    refused.expect_error("specs/shop.yaml is there already, and nothing was written").expect_text("--force");
    assert_eq!(topo.read("specs/shop.yaml"), "mine\n");
    assert!(!topo.path("specs/%2F.yaml").exists());
    topo.run(with(&["--out", "specs", "--force"])).expect_code(0);
    assert_eq!(topo.read("specs/shop.yaml"), SHOP);
}

#[test]
fn only_what_matches_comes_out() {
    topo()
        .run(with(&["--match", "order*", "--vhost", "shop", "-q"]))
        .expect_code(0)
        .expect_text("orders: {type: quorum}");
    let nothing = topo().run(with(&["--match", "mail*"])).expect_code(1).expect_no_result();
    nothing.expect_error("nothing has a name that --match would match");
}

#[test]
fn what_cannot_be_exported_is_said() {
    topo().run(with(&["--vhost", "elsewhere"])).expect_code(1).expect_error("there is no vhost `elsewhere`");
    topo().run(["export", "--definitions", "none.json"]).expect_code(64).expect_error("cannot read none.json");
    let wrong = Topo::offline().file("definitions.json", "[]").run(FROM).expect_code(65);
    wrong.expect_error("definitions.json is not a definitions file that can be used");
    // An export of one vhost does not name it.
    let of_one =
        json!({"rabbit_version": "3.8.9", "queues": [], "exchanges": [], "bindings": [], "policies": []}).to_string();
    let topo = Topo::offline().file("definitions.json", &of_one);
    topo.run(FROM).expect_code(64).expect_error("does not say of which vhost it is").expect_text("--vhost NAME");
    let named = topo.run(with(&["--vhost", "shop", "-q"])).expect_code(0);
    assert_eq!(named.stdout, "version: 1\nvhost: shop\n");
    let from_input = Topo::offline().input(&definitions()).run(["export", "--definitions", "-", "-q"]).expect_code(0);
    assert_eq!(from_input.stdout, format!("{ROOT}---\n{SHOP}"));
}
