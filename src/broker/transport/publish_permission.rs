//! Checks that the user may publish to an exchange, before the first message is consumed.

use super::connection::{Connection, short};
use crate::broker::error::BrokerError;
use crate::model::ExchangeName;
use lapin::BasicProperties;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};

/// Publishes a message that every broker refuses, because its expiration is not a number. `rabbit_channel` checks the
/// permission (403) and the exchange (404) before the properties (406), so the status of the refusal is the result.
pub(super) async fn check_publish_permission(
    connection: &Connection,
    target: &ExchangeName,
) -> Result<(), BrokerError> {
    let request = format!("basic.publish to {target}");
    let channel = connection.channel().await?;
    let refused = connection.answer(&request, async {
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        let properties = BasicProperties::default().with_expiration("probe".into());
        let options = BasicPublishOptions { mandatory: true, immediate: false };
        channel.basic_publish(short(target.as_str()), short(""), options, b"", properties).await?.await
    });
    match refused.await {
        Err(BrokerError::Refused { status: 406, .. }) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(BrokerError::Malformed {
            request,
            detail: "an invalid expiration was accepted; is the server RabbitMQ?".to_owned(),
        }),
    }
}
