# A bunny worker for the queue QUEUE.
require 'bunny'

connection = Bunny.new(ENV.fetch('AMQP_URL')).tap(&:start)
channel = connection.create_channel
options = { durable: true, arguments: { 'x-max-length' => 1000 } }
options = { passive: true } if ENV['MODE'] == 'passive'
queue = channel.queue(ENV.fetch('QUEUE'), options)
queue.subscribe(block: true, manual_ack: true) { |delivery, _, _| channel.ack(delivery.delivery_tag) }
