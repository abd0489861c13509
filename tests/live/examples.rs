//! Applies every example, and checks that a second plan is empty.

use crate::examples::examples;
use crate::support::{Node, Topo};

#[test]
fn every_example_is_applied() {
    for (folder, text) in examples() {
        let vhost = Node::shared().vhost("example");
        let (head, rest) = text.split_once("\nvhost: ").unwrap_or_else(|| panic!("{}", folder.display()));
        let (_, rest) = rest.split_once('\n').unwrap();
        let topo = Topo::new(&vhost).file("topology.yaml", &format!("{head}\nvhost: '{{vhost}}'\n{rest}"));
        topo.run(["apply", "--yes"]).expect_code(0).expect_text("the broker matches the spec");
        let plan = topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes.");
        assert_eq!(plan.stderr, "", "{}", folder.display());
    }
}
