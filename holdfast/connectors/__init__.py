"""Activities that come with Holdfast: calls of services by HTTP.

What may be called is the operator's decision, what is called that of a diagram or a workflow, whose inputs may be anybody's.
So everything here treats its input as hostile:

    urls            a text becomes a URL, strictly
    allow_lists     which hosts, ports and schemes may be called
    addresses       which addresses may be connected to, whatever a name resolves to
    http_requests   the inputs of a task become a request
    connecting      a name becomes a connection to an address that was checked
    http_reading    bytes become a response, with a bound on each part
    http_exchanges  one request with its redirects, each checked anew
    http_bodies     bodies as values
    http_outcomes   responses and troubles as results and failures
    task_headers    what a task says about its result: Camunda's `resultExpression` and its like
    http_activity   the public function
"""
