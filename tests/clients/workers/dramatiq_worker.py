# A dramatiq worker for the queue QUEUE. dramatiq always declares its queues.
import logging
import os
import sys
import time

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker

logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
broker = RabbitmqBroker(url=os.environ["AMQP_URL"], confirm_delivery=True)
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name=os.environ["QUEUE"], actor_name="job")
def job(number):
    pass


if __name__ == "__main__":
    worker = dramatiq.Worker(broker, worker_threads=1)
    worker.start()
    while True:
        time.sleep(1)
