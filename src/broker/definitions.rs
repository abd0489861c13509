//! Reads a definitions file (`rabbitmqctl export_definitions`, `GET /api/definitions`), or nothing, as if it were a live
//! vhost. It says less than a live broker: no counts, no keys of bindings, and from 4.2.9 and 4.3.3 no internal exchanges.

use super::definitions_entries::{
    self as entries, BINDINGS, EXCHANGES, EntryError, Fields, List, PARAMETERS, POLICIES, Part, QUEUES, VHOSTS,
};
use super::rights::is_of_users;
use super::snapshot::{Lists, Snapshot};
use super::survey::Cluster;
use super::wire;
use crate::model::memory::bounded;
use crate::model::{BrokerVersion, VhostName};
use crate::rabbitmq::BrokerProfile;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};

/// The lists of permissions of users in vhosts, and what an entry is called.
const PERMISSIONS: [(&str, &str); 2] = [("permissions", "permission"), ("topic_permissions", "topic permission")];

/// Why a file is not one.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionsError {
    /// Not JSON, or not of that shape.
    #[error("{0}")]
    Shape(#[from] serde_json::Error),
    /// It is of the whole cluster, or of a vhost, and has no lists at all.
    #[error("it contains no queues, exchanges, bindings or vhosts")]
    Nothing,
    /// An object that the broker of that version would not import.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// It is of a broker that is too old.
    #[error(
        "it was written by RabbitMQ {version}; topo supports {} and later (set the version to assume with --broker-version)",
        BrokerVersion::OLDEST_SUPPORTED.series()
    )]
    TooOld {
        /// Its version.
        version: BrokerVersion,
    },
}

/// The lists and versions of a file.
struct File<'a> {
    text: &'a str,
    fields: Fields<'a>,
}

#[derive(Deserialize)]
struct Parameter {
    component: String,
    name: String,
}

impl<'a> File<'a> {
    /// Of any JSON: one without any of the lists is something else. Editors and shells begin a file with a mark.
    fn parse(text: &'a str) -> Result<Self, DefinitionsError> {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let file = Self { text, fields: entries::fields(text)? };
        if ["vhosts", "queues", "exchanges", "bindings"].iter().all(|key| file.list(key).is_none()) {
            return Err(DefinitionsError::Nothing);
        }
        Ok(file)
    }

    /// A list, if the file has it.
    fn list(&self, key: &str) -> Option<Part<'a>> {
        self.fields.get(key).copied().filter(|part| part.text.starts_with('['))
    }

    fn entries(&self, key: &str) -> impl Iterator<Item = Part<'a>> {
        self.list(key).into_iter().flat_map(Part::elements)
    }

    /// An export of the whole broker has both from 3.8 on, that of one vhost the first alone.
    fn version(&self) -> Option<BrokerVersion> {
        let named = ["rabbit_version", "rabbitmq_version"].into_iter().find_map(|key| self.fields.get(key));
        serde_json::from_str::<String>(named?.text).ok()?.parse().ok()
    }

    /// The vhosts that it lists with their settings; `None` where it is an export of one vhost.
    fn listed_vhosts(&self, version: BrokerVersion) -> Result<Option<Vec<wire::Vhost>>, EntryError> {
        let Some(list) = self.list(VHOSTS.key) else { return Ok(None) };
        list.elements().map(|entry| VHOSTS.read(self.text, entry, version)).collect::<Result<_, _>>().map(Some)
    }

    /// The vhosts that entries of the lists name.
    fn named_vhosts(&self) -> impl Iterator<Item = String> {
        let lists = [QUEUES, EXCHANGES, BINDINGS, POLICIES, PARAMETERS].map(|list| list.key);
        lists
            .into_iter()
            .chain(PERMISSIONS.map(|(key, _)| key))
            .flat_map(|key| self.entries(key))
            .filter_map(Part::vhost)
    }

    /// The entries of one vhost; an entry that names none is of an export of that vhost.
    fn of_vhost<T: DeserializeOwned>(
        &self,
        list: &List,
        vhost: &VhostName,
        version: BrokerVersion,
    ) -> Result<Vec<T>, EntryError> {
        self.entries_of_vhost(list.key, vhost).map(|entry| list.read(self.text, entry, version)).collect()
    }

    fn entries_of_vhost(&self, key: &str, vhost: &VhostName) -> impl Iterator<Item = Part<'a>> {
        self.entries(key).filter(|entry| entry.vhost().is_none_or(|name| name == vhost.as_str()))
    }
}

/// A broker without anything in it but, from a spec's point of view, a place for the vhost.
pub fn empty(vhost: VhostName, version: BrokerVersion) -> Snapshot {
    Snapshot::missing(vhost, &cluster(version))
}

/// The vhosts of a file, by name; none where it is an export of one vhost, which does not name it.
pub fn vhosts(text: &str) -> Result<Vec<VhostName>, DefinitionsError> {
    let file = File::parse(text)?;
    let version = file.version().unwrap_or(BrokerVersion::NEWEST_KNOWN);
    let listed = file.listed_vhosts(version)?.into_iter().flatten().map(|vhost| vhost.name);
    let names: BTreeSet<String> = listed.chain(file.named_vhosts()).collect();
    Ok(names.into_iter().map(VhostName::new).collect())
}

/// Objects of the whole cluster that no spec declares, by what they are (`user`), with their names.
pub fn cluster_wide(text: &str) -> Result<BTreeMap<String, Vec<String>>, DefinitionsError> {
    let file = File::parse(text)?;
    let kinds = [("users", "user"), ("global_parameters", "global parameter")];
    let named = kinds.map(|(key, thing)| {
        let names = file.entries(key).map(|entry| entry.name("name"));
        (thing.to_owned(), names.filter(|name| key == "users" || is_of_users(name)).collect::<Vec<String>>())
    });
    Ok(named.into_iter().filter(|(_, names)| !names.is_empty()).collect())
}

/// One vhost of a file. The version is the given one, else the file's, else the newest that is known. An export of one
/// vhost does not name it: then everything in it is taken for that vhost's.
///
/// The broker imports objects of a vhost that the file does not list where that vhost exists: here, it has no settings.
pub fn read(text: &str, vhost: &VhostName, version: Option<BrokerVersion>) -> Result<Snapshot, DefinitionsError> {
    bounded(text.len(), || read_unbounded(text, vhost, version))
}

fn read_unbounded(text: &str, vhost: &VhostName, version: Option<BrokerVersion>) -> Result<Snapshot, DefinitionsError> {
    let file = File::parse(text)?;
    let version = version.or(file.version()).unwrap_or(BrokerVersion::NEWEST_KNOWN);
    if !version.is_supported() {
        return Err(DefinitionsError::TooOld { version });
    }
    let cluster = cluster(version);
    let settings = match file.listed_vhosts(version)? {
        Some(vhosts) => match vhosts.into_iter().find(|known| known.name == vhost.as_str()) {
            None if file.named_vhosts().all(|name| name != vhost.as_str()) => {
                return Ok(Snapshot::missing(vhost.clone(), &cluster));
            }
            settings => settings,
        },
        None => None,
    };
    let mut beside = BTreeMap::new();
    let mut queues: Vec<wire::Queue> = file.of_vhost(&QUEUES, vhost, version)?;
    only_first(&mut queues, "repeated queue", |it| &it.name, &mut beside);
    let mut exchanges: Vec<wire::Exchange> = file.of_vhost(&EXCHANGES, vhost, version)?;
    only_first(&mut exchanges, "repeated exchange", |it| &it.name, &mut beside);
    for (key, thing) in PERMISSIONS {
        let users: Vec<String> = file.entries_of_vhost(key, vhost).map(|entry| entry.name("user")).collect();
        if !users.is_empty() {
            beside.insert(thing.to_owned(), users);
        }
    }
    let lists = Lists {
        settings,
        queues,
        exchanges,
        bindings: file.of_vhost(&BINDINGS, vhost, version)?,
        policies: file.of_vhost(&POLICIES, vhost, version)?,
        operator_policies: operator_policies(&file, vhost, version, &mut beside)?,
    };
    Ok(Snapshot { beside, has_passing: false, ..Snapshot::of(vhost.clone(), &cluster, lists) })
}

/// Of two by one name, a broker that imports them keeps the first (`rabbit_definitions:add_queue_int`).
fn only_first<T>(
    listed: &mut Vec<T>,
    thing: &str,
    name: impl Fn(&T) -> &String,
    beside: &mut BTreeMap<String, Vec<String>>,
) {
    let mut seen = BTreeSet::new();
    listed.retain(|it| {
        let is_first = seen.insert(name(it).clone());
        if !is_first {
            beside.entry(thing.to_owned()).or_default().push(name(it).clone());
        }
        is_first
    });
}

/// The longest limit of a vhost that is shown.
const LONGEST_LIMIT: usize = 20;

/// Those among the parameters; of the others only the names are kept.
fn operator_policies(
    file: &File<'_>,
    vhost: &VhostName,
    version: BrokerVersion,
    beside: &mut BTreeMap<String, Vec<String>>,
) -> Result<Vec<wire::Policy>, EntryError> {
    let mut policies = Vec::new();
    for entry in file.entries_of_vhost(PARAMETERS.key, vhost) {
        let Parameter { component, name } = PARAMETERS.read(file.text, entry, version)?;
        let (thing, names) = match component.as_str() {
            "operator_policy" => {
                policies.push(PARAMETERS.read_value(file.text, entry, &name)?);
                continue;
            }
            "vhost-limits" => {
                let limits = entry.field("value").and_then(|value| entries::fields(value).ok()).unwrap_or_default();
                let shown = |(limit, number): (String, Part<'_>)| {
                    let is_short = number.text.len() <= LONGEST_LIMIT;
                    format!("{limit} {}", if is_short { number.text } else { "…" })
                };
                ("vhost limit".to_owned(), limits.into_iter().map(shown).collect())
            }
            "shovel" | "federation-upstream" | "federation-upstream-set" => (component.replace('-', " "), vec![name]),
            other => ("parameter".to_owned(), vec![format!("{name} of {other}")]),
        };
        let known: &mut Vec<String> = beside.entry(thing).or_default();
        known.extend(names);
    }
    Ok(policies)
}

fn cluster(version: BrokerVersion) -> Cluster {
    Cluster { name: String::new(), product: "RabbitMQ".to_owned(), profile: BrokerProfile::of(version) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Vhost;

    const FILE: &str = r#"{"rabbit_version":"3.10.8","vhosts":[{"name":"shop"}],
        "queues":[{"name":"q","vhost":"shop","durable":true,"auto_delete":false,"arguments":{}},
                  {"name":"other","vhost":"/","durable":true,"auto_delete":false,"arguments":{}}],
        "exchanges":[{"name":"e","vhost":"shop","type":"topic","durable":true,"auto_delete":false,"internal":false,"arguments":{}}],
        "bindings":[{"source":"e","vhost":"shop","destination":"q","destination_type":"queue","routing_key":"a","arguments":{}}],
        "policies":[]}"#;

    #[test]
    fn one_vhost_is_read() {
        let snapshot = read(FILE, &"shop".into(), None).unwrap();
        assert_eq!(snapshot.profile.version.to_string(), "3.10.8");
        assert_eq!(snapshot.topology.queues.len(), 1);
        assert_eq!(snapshot.topology.bindings.len(), 1);
        assert!(snapshot.topology.settings.is_some());
    }

    #[test]
    fn a_vhost_that_is_not_in_it_is_missing() {
        assert!(read(FILE, &"elsewhere".into(), None).unwrap().topology.settings.is_none());
        for other in ["{}", r#"{"name":"shop","version":"1.0.0"}"#, r#"{"users":[],"permissions":[]}"#] {
            assert!(matches!(read(other, &"shop".into(), None), Err(DefinitionsError::Nothing)));
            assert!(matches!(vhosts(other), Err(DefinitionsError::Nothing)));
        }
    }

    #[test]
    fn what_stands_among_the_parameters_is_read_or_counted() {
        let parameters = r#""parameters":[
            {"component":"operator_policy","vhost":"shop","name":"cap",
             "value":{"pattern":"^q","apply-to":"queues","priority":1,"definition":{"max-length":5}}},
            {"component":"operator_policy","vhost":"/","name":"other","value":{"pattern":"","definition":{}}},
            {"component":"shovel","vhost":"shop","name":"s","value":{}},
            {"component":"federation-upstream","vhost":"shop","name":"u","value":{}},
            {"component":"vhost-limits","vhost":"shop","name":"limits","value":{"max-queues":5}},
            {"component":"odd","vhost":"shop","name":"o","value":1}],"policies""#;
        let twice = r#""queues":[{"name":"q","vhost":"shop","durable":true,"auto_delete":false,"arguments":{"x-max-length":1}},"#;
        let file = FILE.replace("\"policies\"", parameters).replace("\"queues\":[", twice);
        let snapshot = read(&format!("\u{feff}{file}"), &"shop".into(), None).unwrap();
        let cap = &snapshot.operator_policies[&"cap".into()];
        assert_eq!((cap.pattern.as_str(), snapshot.operator_policies.len()), ("^q", 1));
        assert_eq!(cap.definition["max-length"], 5.into());
        let beside: Vec<_> = snapshot.beside.iter().map(|(thing, names)| format!("{thing}: {names:?}")).collect();
        assert_eq!(
            beside,
            [
                r#"federation upstream: ["u"]"#,
                r#"parameter: ["o of odd"]"#,
                r#"repeated queue: ["q"]"#,
                r#"shovel: ["s"]"#,
                r#"vhost limit: ["max-queues 5"]"#,
            ]
        );
        assert!(snapshot.topology.queues[&"q".into()].arguments.contains_key("x-max-length"));
    }

    #[test]
    fn a_file_of_a_broker_that_is_too_old_is_refused() {
        let old = FILE.replace("3.10.8", "3.7.28");
        assert!(matches!(read(&old, &"shop".into(), None), Err(DefinitionsError::TooOld { .. })));
        assert!(read(&old, &"shop".into(), Some(BrokerVersion::NEWEST_KNOWN)).is_ok());
    }

    #[test]
    fn missing_fields_take_the_defaults_of_the_version() {
        let bare = |list: &str| format!("{{\n \"vhosts\": [{{\"name\": \"/\"}}],\n {list}\n}}");
        let imported = |list: &str, version: &str| {
            read(&bare(list), &"/".into(), Some(version.parse().unwrap()))
                .map(|snapshot| snapshot.topology)
                .map_err(|error| error.to_string())
        };
        let queue = r#""queues": [{"name": "q", "vhost": "/"}]"#;
        let missing = |field: &str, version: &str, since: &str| {
            format!(
                "queue `q` (line 3): missing field `{field}`, which has no default in RabbitMQ {version} (only from {since} on)"
            )
        };
        assert_eq!(imported(queue, "3.8.9").unwrap_err(), missing("arguments", "3.8.9", "3.10"));
        assert_eq!(imported(queue, "3.10.8").unwrap_err(), missing("durable", "3.10.8", "4.0"));
        let read_queue = imported(queue, "4.0.5").unwrap().queues[&"q".into()].clone();
        assert!(read_queue.durable && !read_queue.auto_delete && read_queue.arguments.is_empty());
        let exchange =
            r#""exchanges": [{"name": "e", "vhost": "/", "type": "topic", "durable": true, "arguments": {}}]"#;
        assert!(!imported(exchange, "3.8.9").unwrap().exchanges[&"e".into()].auto_delete);
        let binding = r#""bindings": [{"source": "e", "vhost": "/", "destination": "q", "destination_type": "queue"}]"#;
        assert_eq!(imported(binding, "4.3.6").unwrap_err(), "binding `e → q` (line 3): missing field `routing_key`");
        let odd = r#""queues": [{"name": "q", "vhost": "/", "durable": "yes"}]"#;
        let expected = "queue `q` (line 3): invalid type: string \"yes\", expected a boolean";
        assert_eq!(imported(odd, "4.3.6").unwrap_err(), expected);
        assert_eq!(imported(r#""queues": [{}]"#, "4.3.6").unwrap_err(), "queue (line 3): missing field `name`");
    }

    #[test]
    fn objects_of_a_vhost_that_is_not_listed_are_read() {
        let names: Vec<String> = vhosts(FILE).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["/", "shop"]);
        let snapshot = read(FILE, &"/".into(), None).unwrap();
        assert_eq!(snapshot.topology.queues.len(), 1);
        assert_eq!(snapshot.topology.settings, Some(Vhost::default()));
    }

    #[test]
    fn a_vhost_that_only_parameters_or_permissions_name_is_read() {
        let entries = r#""permissions":[{"user":"u","vhost":"p","configure":"","write":"","read":""}],
            "topic_permissions":[{"user":"u","vhost":"t","exchange":"e","write":"","read":""}],
            "parameters":[{"component":"shovel","vhost":"s","name":"n","value":{}}],"policies""#;
        let file = FILE.replace("\"policies\"", entries);
        let names: Vec<String> = vhosts(&file).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["/", "p", "s", "shop", "t"]);
        for (vhost, thing, name) in [("p", "permission", "u"), ("t", "topic permission", "u"), ("s", "shovel", "n")] {
            let snapshot = read(&file, &vhost.into(), None).unwrap();
            assert_eq!(snapshot.topology.settings, Some(Vhost::default()), "{vhost}");
            assert_eq!(snapshot.beside, BTreeMap::from([(thing.to_owned(), vec![name.to_owned()])]));
        }
    }

    #[test]
    fn errors_of_vhosts_and_operator_policies_name_object_and_line() {
        let error = |parameters: &str, vhosts: &str| {
            let file = format!("{{\n\"vhosts\": [\n{vhosts}],\n\"parameters\": [\n{parameters}]}}");
            read(&file, &"/".into(), None).unwrap_err().to_string()
        };
        let root = r#"{"name": "/"}"#;
        let policy =
            |value: &str| format!(r#"{{"component":"operator_policy","vhost":"/","name":"cap","value":{value}}}"#);
        for (value, problem) in [
            ("{}", "missing field `pattern`"),
            (r#"{"pattern": "", "definition": 1}"#, "invalid type: integer `1`, expected a JSON object of arguments"),
            ("[]", "its value is not an object"),
        ] {
            let expected = format!("parameter `operator_policy → cap` (line 5): {problem}");
            assert_eq!(error(&policy(value), root), expected);
        }
        assert_eq!(error("", &format!("{root},\n{{\"nam\": 1}}")), "vhost (line 4): missing field `name`");
        assert_eq!(
            error("", &format!("{root},\n{{\"name\": \"x\", \"description\": 1}}")),
            "vhost `x` (line 4): invalid type: integer `1`, expected a string"
        );
        assert_eq!(vhosts("{\"vhosts\": [\n\n{}]}").unwrap_err().to_string(), "vhost (line 3): missing field `name`");
    }

    #[test]
    fn parameters_of_any_depth_are_named() {
        let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
        let parameter = |component: &str, value: &str| {
            format!(r#"{{"component":"{component}","vhost":"shop","name":"p","value":{value}}}"#)
        };
        let policy = format!(r#"{{"pattern":"^q","definition":{{"max-length":{deep}}}}}"#);
        let limits = format!(r#"{{"max-queues":{deep}}}"#);
        let parameters =
            [("shovel", deep.as_str()), ("odd", &deep), ("operator_policy", &policy), ("vhost-limits", &limits)];
        let parameters = parameters.map(|(component, value)| parameter(component, value)).join(",");
        let file = FILE.replace("\"policies\"", &format!("\"parameters\":[{parameters}],\"policies\""));
        let snapshot = read(&file, &"shop".into(), None).unwrap();
        assert!(snapshot.operator_policies[&"p".into()].definition["max-length"].is_cut());
        assert_eq!(snapshot.beside["vhost limit"], ["max-queues …"]);
        assert_eq!(snapshot.beside["shovel"], ["p"]);
    }

    #[test]
    fn nested_values_of_any_depth_are_read() {
        let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
        let file = FILE.replace("\"arguments\":{}}]", &format!("\"arguments\":{{\"x-deep\":{deep}}}}}]"));
        let snapshot = read(&file, &"shop".into(), None).unwrap();
        assert!(snapshot.topology.bindings.iter().all(|binding| binding.arguments["x-deep"].is_cut()));
    }
}
