//! Applies a resolution to a spec as a user does: its keys replace those of the object, and listed keys are removed.
//!
//! Specs and resolutions use block style with two spaces per level: section, object, key.

use serde_json::Value;

/// The sections with their objects. Each object has keys with their lines.
type Sections = Vec<(String, Vec<(String, Vec<(String, String)>)>)>;

fn read(text: &str) -> Sections {
    let mut sections: Sections = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let trimmed = line.trim_start();
        let name = trimmed.split_once(':').map_or(trimmed, |(name, _)| name).to_owned();
        match line.len() - trimmed.len() {
            0 => sections.push((line.to_owned(), Vec::new())),
            2 => sections.last_mut().unwrap().1.push((line.to_owned(), Vec::new())),
            4 => sections.last_mut().unwrap().1.last_mut().unwrap().1.push((name, format!("{line}\n"))),
            _ => {
                let keys = &mut sections.last_mut().unwrap().1.last_mut().unwrap().1;
                keys.last_mut().unwrap().1.push_str(&format!("{line}\n"));
            }
        }
    }
    sections
}

fn entry<'a, T: Default>(list: &'a mut Vec<(String, T)>, name: &str) -> &'a mut T {
    let index = list.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
        list.push((name.to_owned(), T::default()));
        list.len() - 1
    });
    &mut list[index].1
}

/// Removes `messageTtl` or `arguments.x-message-ttl` from an object. Returns true if the key existed.
fn remove_keys(object: &mut Vec<(String, String)>, path: &str) -> bool {
    let Some((table, name)) = path.split_once('.') else {
        let before = object.len();
        object.retain(|(key, _)| key != path);
        return object.len() < before;
    };
    let Some((_, lines)) = object.iter_mut().find(|(key, _)| key == table) else { return false };
    let (gone, kept): (Vec<&str>, Vec<&str>) =
        lines.lines().partition(|line| line.trim_start().starts_with(&format!("{name}:")));
    let (is_gone, is_empty) = (!gone.is_empty(), kept.len() == 1);
    *lines = kept.iter().map(|line| format!("{line}\n")).collect();
    // An empty mapping would be an error.
    if is_empty {
        object.retain(|(key, _)| key != table);
    }
    is_gone
}

/// Returns the spec with a resolution; `section` and `name` identify the object.
pub(crate) fn apply_resolution_to(spec: &str, (section, name): (&str, &str), way: &Value) -> String {
    let mut sections = read(spec);
    for (section, objects) in read(way["yaml"].as_str().unwrap_or_default()) {
        let known = entry(&mut sections, &section);
        for (object, keys) in objects {
            let object = entry(known, &object);
            for (key, lines) in keys {
                *entry(object, &key) = lines;
            }
        }
    }
    for gone in way["removeKeys"].as_array().into_iter().flatten().map(|path| path.as_str().unwrap()) {
        if let Some(path) = gone.strip_prefix("defaults.queue.") {
            // Several objects may have the same resolution.
            remove_keys(entry(entry(&mut sections, "defaults:"), "  queue:"), path);
        } else {
            let object = entry(entry(&mut sections, &format!("{section}:")), &format!("  {name}:"));
            assert!(remove_keys(object, gone), "{name} has no {gone}: {spec}");
        }
    }
    let mut text = String::new();
    for (section, objects) in sections {
        text.push_str(&format!("{section}\n"));
        for (object, keys) in objects {
            text.push_str(&format!("{object}\n"));
            keys.iter().for_each(|(_, lines)| text.push_str(lines));
        }
    }
    text
}

/// Returns the resolutions of this kind for the change with this address.
pub(crate) fn resolutions_of<'a>(plan: &'a Value, address: &str, kind: &str) -> Vec<&'a Value> {
    let changes = plan["vhosts"][0]["changes"].as_array().unwrap();
    let change = changes.iter().find(|change| change["address"] == address).unwrap_or_else(|| panic!("{plan:#}"));
    let resolutions = change["conflict"]["resolutions"].as_array().unwrap_or_else(|| panic!("no conflict: {change:#}"));
    resolutions.iter().filter(|way| way["kind"] == kind).collect()
}
