// An amqp-connection-manager worker for the queue QUEUE.
const { connect } = require('amqp-connection-manager');

const queue = process.env.QUEUE;
const channel = connect([process.env.AMQP_URL]).createChannel({
  setup: async (channel) => {
    if (process.env.MODE !== 'passive') {
      await channel.assertQueue(queue, { durable: true, maxLength: 1000 });
    }
  },
});
// Without a listener, an error ends the process.
channel.on('error', (error) => console.error(error.message));
channel.consume(queue, (message) => channel.ack(message));
