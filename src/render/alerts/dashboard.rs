//! Renders a dashboard for Grafana, with one row for each queue.

use crate::model::printable::clean;
use crate::model::units::duration;
use crate::model::{Levels, Thresholds};
use crate::operate::alerts::{Metric, VhostAlerts, WatchedQueue};
use serde_json::{Value, json};

/// The first characters of a dashboard.
pub(super) const BEGINNING: &str = "{\n  \"description\": \"Written by topo alerts";

/// The number of columns in Grafana's grid.
const COLUMNS: u64 = 24;
/// The height of a panel.
const HEIGHT: u64 = 6;

/// Renders the dashboard for all vhosts. For each vhost, the dead-letter queues come first, then the other queues with
/// their tiers.
pub fn dashboard(vhosts: &[VhostAlerts]) -> String {
    let mut panels = Panels { next_id: 1, y: 0, panels: Vec::new() };
    for vhost in vhosts {
        for queue in &vhost.queues {
            panels.row(vhost, queue);
        }
    }
    let names: Vec<String> = vhosts.iter().map(|vhost| clean(vhost.vhost.as_str())).collect();
    let dashboard = json!({
        "description": "Written by topo alerts. The colors show the thresholds in the spec.",
        "title": format!("Queues in {}", names.join(", ")),
        "tags": ["rabbitmq", "topo"],
        "schemaVersion": 38,
        "editable": true,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        ]},
        "panels": panels.panels,
    });
    format!("{dashboard:#}\n")
}

struct Panels {
    next_id: u64,
    y: u64,
    panels: Vec<Value>,
}

impl Panels {
    fn row(&mut self, vhost: &VhostAlerts, queue: &WatchedQueue) {
        let kind = if queue.is_dead_letter_queue { "Dead-letter queue" } else { "Queue" };
        let title = format!("{kind} {} in vhost {}", clean(queue.queue.as_str()), clean(vhost.vhost.as_str()));
        self.add(0, COLUMNS, 1, json!({"type": "row", "title": title, "collapsed": false, "panels": []}));
        self.y += 1;
        let messages = queue.series.max(Metric::Messages);
        self.add(0, 4, HEIGHT, stat("Messages", &messages, &steps(&queue.thresholds.depth)));
        let series = [
            ("messages", messages),
            ("ready", queue.series.max(Metric::Ready)),
            ("unacknowledged", queue.series.max(Metric::Unacknowledged)),
        ];
        let is_alone = queue.tiers.is_empty();
        self.add(4, if is_alone { 14 } else { 8 }, HEIGHT, graph("Messages by state", &series, &queue.thresholds));
        if !is_alone {
            let tiers = queue.tiers.iter().map(|(name, series)| (name.as_str(), series.max(Metric::Messages)));
            let tiers: Vec<(&str, String)> = tiers.collect();
            self.add(12, 6, HEIGHT, graph("Messages waiting for a retry", &tiers, &Thresholds::default()));
        }
        let consumers = [("consumers", queue.series.max(Metric::Consumers))];
        self.add(18, 6, HEIGHT, graph("Consumers", &consumers, &Thresholds::default()));
        self.y += HEIGHT;
    }

    fn add(&mut self, x: u64, width: u64, height: u64, mut panel: Value) {
        panel["id"] = self.next_id.into();
        panel["gridPos"] = json!({"x": x, "y": self.y, "w": width, "h": height});
        self.next_id += 1;
        self.panels.push(panel);
    }
}

/// Returns the colors for message counts. Without thresholds, every count has the same color.
fn steps(depth: &Levels<i64>) -> Value {
    let mut steps = vec![json!({"color": "green", "value": null})];
    steps.extend(depth.warning.map(|value| json!({"color": "orange", "value": value})));
    steps.extend(depth.critical.map(|value| json!({"color": "red", "value": value})));
    json!({"mode": "absolute", "steps": steps})
}

fn targets(series: &[(&str, String)]) -> Vec<Value> {
    let references = ('A'..='Z').map(String::from).chain((1..).map(|number| format!("R{number}")));
    let target = |((legend, expression), reference): (&(&str, String), String)| json!({"refId": reference, "expr": expression, "legendFormat": clean(legend)});
    series.iter().zip(references).map(target).collect()
}

fn source() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

fn stat(title: &str, expression: &str, steps: &Value) -> Value {
    json!({
        "type": "stat",
        "title": title,
        "datasource": source(),
        "targets": targets(&[(title, expression.to_owned())]),
        "fieldConfig": {"defaults": {"unit": "none", "decimals": 0, "thresholds": steps}, "overrides": []},
        "options": {"colorMode": "background", "graphMode": "area", "reduceOptions": {"calcs": ["lastNotNull"]}},
    })
}

/// Returns a graph. Depth thresholds are lines in the graph, and the description contains the other thresholds.
fn graph(title: &str, series: &[(&str, String)], thresholds: &Thresholds) -> Value {
    let style = if thresholds.depth.is_empty() { "off" } else { "line" };
    let defaults = json!({
        "unit": "none",
        "decimals": 0,
        "min": 0,
        "thresholds": steps(&thresholds.depth),
        "custom": {"thresholdsStyle": {"mode": style}},
    });
    json!({
        "type": "timeseries",
        "title": title,
        "description": other_thresholds(thresholds),
        "datasource": source(),
        "targets": targets(series),
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}},
    })
}

/// Describes the thresholds that the graph does not show as lines: all thresholds except the depth thresholds.
fn other_thresholds(thresholds: &Thresholds) -> String {
    let time = |milliseconds: i64| duration(milliseconds).unwrap_or_default();
    let mut sentences = Vec::new();
    for severity in crate::model::Severity::ALL {
        let name = severity.as_str();
        let growth = thresholds.growth.of(severity);
        sentences
            .extend(growth.map(|it| format!("Growth: {name} at {} messages within {}.", it.messages, time(it.within))));
        sentences.extend(thresholds.age.of(severity).map(|age| format!("Age: {name} after {}.", time(age))));
    }
    sentences.extend(thresholds.no_consumers.map(|it| format!("No consumers: warning after {}.", time(it))));
    sentences.join(" ")
}
