"""A Salesforce org on loopback, for the demo and the tests: an independent reading of the protocols.

    with SalesforceOrg() as org:                      # in threads of this process
        with org.transaction() as tx:                 # commits at the end of the block
            key = tx.insert("Account", {"Name": "Acme"})
            tx.update("Account", key, {"Phone": "1"})
        org.ledger.state("Account")                   # the truth: id → values
        org.instance_url, org.pubsub_endpoint, org.client_id, org.client_secret, org.org_id

    with OrgProcess("--size", "demo") as org:         # in a process of its own (process.py): same attributes,
        org.admin("update", object="Account", …)      # the commands below, and org.state("Account")

``airflow cdc sandbox salesforce`` runs one until it is stopped.

What is there
    OAuth (client credentials, JWT bearer, refresh token with rotation), describe, SOQL without relationships, query and
    queryAll by pages, one and many records (read, written, upserted), Bulk API 2.0 query jobs, updated and deleted,
    limits, tooling's channel members, event schemas, and the Pub/Sub service: GetTopic, GetSchema, Subscribe.
    ``tls=True`` adds a front with a certificate of its own. Objects: Account with person accounts, Contact, Invoice__c
    (a field of every kind), Task (archived), Attachment (a blob), TaskStatus (Bulk refuses it), AccountHistory (no
    SystemModstamp), LoginHistory (LoginTime only), UserPreference (no time at all), ActivityHistory (no queries), User,
    Organization.
Not there
    SOAP, CometD, managed subscriptions, publishing, Bulk ingest, sharing rules other than the owner's. Permissions work
    at once, not within ten minutes.
Choices where nobody knows, all in one place each
    An update is followed by LastModifiedDate even within one second. Deletes never melt into earlier changes of the
    transaction. Up to 100 equal changes in a row are one event. Overflow counts changed fields, audit fields apart.
    A channel member names the channel of one's own by its id, the standard one and the objects by their names.
    A job reads the ids that were there when it began, each piece of them when its turn comes.
    Open transactions do not hold back others: their rows come late, with the time of their statements.

Time is ``org.clock``: advance it and tokens, locators, the Recycle Bin, retention and allocations grow old. Waiting on
the wire is real time: ``keepalive_s``, ``org.pubsub.idle_limit_s``.

Admin commands: POST /admin/<command> with a JSON object, no token. In Python the same is an attribute away.

    ``clock``           advance (seconds), freeze, run → now                               org.clock
    ``begin``           user, origin, coalesce, as_gap → transaction                       org.transaction()
    ``commit``          transaction
    ``rollback``        transaction
    ``insert``          [transaction,] object, records, audit → result: ids
    ``update``          [transaction,] object, ids, values, system
    ``delete``          [transaction,] object, ids: into the Recycle Bin, children too
    ``undelete``        [transaction,] object, ids
    ``purge``           [transaction,] object, ids: a hard delete, no event
    ``merge``           [transaction,] object, winner, losers, values
    ``load``            object, records → ids: there without any event                      org.load()
    ``gap``             object, ids, kind: GAP_CREATE, GAP_UPDATE, GAP_DELETE, GAP_UNDELETE org.gap()
    ``archive``         object, ids: out of queries, told as GAP_DELETE                     org.archive()
    ``empty_bin``       what was deleted 15 days ago goes for good                          org.empty_bin()
    ``field``           object, field: {kind, name, …}, convert: empties it, ids "001*"     org.change_field()
    ``drop_field``      object, name                                                        org.drop_field()
    ``refuse_bulk``     object                                                              org.store.refuse_bulk()
    ``permissions``     username, access: {object: none | own | all}, access_to_all,
                        hidden: [[object, field]]                                           org.integration
    ``expire_tokens``   every access token ends now                                         org.tokens.expire()
    ``expire_cursors``  every query locator ends now                                        org.cursors.forget_all()
    ``limits``          request_limit, requests: used so far today
    ``bulk``            piece_rows, page_rows, scientific: numbers like 1.39E8 in CSV,
                        release: let held jobs go on                                        org.bulk
    ``bus``             allocation (deliveries per day), retention_s, repeat: the last n events once more,
                        reset: no replay id is known any more                               org.bus
    ``channel``         name, members: [{entity, filter_expression, enriched}]              org.channels
    ``rules``           overflow: changes until a transaction overflows, merge              org.rules
    ``migrate``         the org moves: replay ids void, commit numbers anew                 org.migrate()
    ``refresh``         the same with another org id                                        org.refresh()
    ``faults``          see below, clear                                                    org.faults

    GET /admin/org                    ids, secrets, counts, open transactions, faults hit
    GET /admin/ledger?after=N         lines of JSON: every commit and the ids it changed
    GET /admin/ledger/Account?number=N&everything=true    lines of JSON: the records after commit N

Faults are ordered in advance and used up by what they hit (faults.py has all fields).

    http: [{match, status, code, message, times, after, retry_after}]     "GET .*/query/" 401 INVALID_SESSION_ID,
          403 REQUEST_LIMIT_EXCEEDED, 429, 503 …; match is searched in "METHOD /path"
    rpc:  [{method, code, status, times, after, after_events}]            GetTopic, GetSchema or Subscribe, refused with
          "service.auth.error", "subscription.fetch.replayid.corrupted", "subscription.limit.exceeded" …; a stream also
          in the middle, after n events; without a code the connection breaks
    bulk: [{state, message, times, hold_after_rows}]                      Failed, or InProgress until ``bulk`` release
    truncate_csv: so many result bodies; lose_events: so many events
    expire_tokens_after: every token ends after that many more requests

Speed, measured on two cores beside other work: 75,000 to 100,000 events/s to a subscriber in another process, 12,000
changes/s committed with their events, 70,000 rows/s of CSV (20 columns), 40,000 records/s loaded at about 1.2 kB each.
"""

from airflow_cdc_provider.sandbox.salesforce.org import SalesforceOrg

__all__ = ["SalesforceOrg"]
