<?php
// A php-amqplib worker for the queue QUEUE.
require 'PhpAmqpLib/autoload.php';

use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Wire\AMQPTable;

$url = parse_url(getenv('AMQP_URL'));
$vhost = rawurldecode(substr($url['path'], 1));
$connection = new AMQPStreamConnection($url['host'], $url['port'], $url['user'], $url['pass'], $vhost);
$channel = $connection->channel();
$queue = getenv('QUEUE');
if (getenv('MODE') !== 'passive') {
    $channel->queue_declare($queue, false, true, false, false, false, new AMQPTable(['x-max-length' => 1000]));
}
$channel->basic_consume($queue, '', false, false, false, false, fn ($message) => $message->ack());
while ($channel->is_consuming()) {
    $channel->wait();
}
