# A Celery worker for the queue QUEUE, whose maximum length is MAX_LENGTH (default: 1000).
import os
from celery import Celery
from kombu import Exchange, Queue

passive = os.environ["MODE"] == "passive"
name = os.environ["QUEUE"]
app = Celery("tasks", broker=os.environ["AMQP_URL"])
# The exchange of the messages. Celery itself publishes through the default exchange, because the exchange is direct.
queue = Queue(
    name,
    exchange=Exchange("work", type="direct", durable=True, no_declare=passive),
    routing_key=name,
    durable=True,
    queue_arguments={"x-max-length": int(os.environ.get("MAX_LENGTH", "1000"))},
    no_declare=passive,
)
app.conf.update(task_queues=[queue], task_default_queue=name, broker_connection_retry_on_startup=True)


@app.task(name="job")
def job(number):
    return number


if __name__ == "__main__":
    app.worker_main(["worker", "--pool=solo", "--concurrency=1", "--loglevel=warning", "--without-gossip", "--without-mingle"])
