// A rascal worker for the queue QUEUE.
const { BrokerAsPromised, withDefaultConfig } = require('rascal');

(async () => {
  const passive = process.env.MODE === 'passive';
  const options = passive ? { assert: false, check: false } : { options: { arguments: { 'x-max-length': 1000 } } };
  const url = new URL(process.env.AMQP_URL);
  const vhost = decodeURIComponent(url.pathname.slice(1));
  const broker = await BrokerAsPromised.create(
    withDefaultConfig({
      vhosts: {
        [vhost]: {
          connection: { url: process.env.AMQP_URL },
          queues: { [process.env.QUEUE]: options },
          subscriptions: { jobs: { queue: process.env.QUEUE } },
        },
      },
    }),
  );
  broker.on('error', (error) => console.error(error.message));
  const subscription = await broker.subscribe('jobs');
  subscription.on('message', (message, content, ackOrNack) => ackOrNack());
  subscription.on('error', (error) => console.error(error.message));
})();
