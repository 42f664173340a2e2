"""A Salesforce org on loopback, for the demo and the tests: an independent implementation of the protocols.

    with SalesforceOrg() as org:                      # in threads of this process
        with org.transaction() as tx:                 # commits at the end of the block
            key = tx.insert("Account", {"Name": "Acme"})
            tx.update("Account", key, {"Phone": "1"})
        org.ledger.state("Account")                   # the committed records: id → values
        org.instance_url, org.pubsub_endpoint, org.client_id, org.client_secret, org.org_id

    with OrgProcess("--size", "demo") as org:         # in a separate process (process.py): same attributes,
        org.admin("update", object="Account", …)      # the commands below, and org.state("Account")

``airflow cdc sandbox salesforce`` runs an org until it is stopped.

Supported
    OAuth (client credentials, JWT bearer, refresh token with rotation), describe, SOQL without relationships, query and
    queryAll by pages, one and many records (read, write, upsert), Bulk API 2.0 query jobs, updated and deleted, limits,
    channel members of the Tooling API, event schemas, and the Pub/Sub service: GetTopic, GetSchema, Subscribe.
    ``tls=True`` adds an HTTPS server with its own certificate. Objects: Account with person accounts, Contact,
    Invoice__c (a field of every kind), Task (archived), Attachment (a blob), TaskStatus (rejected by Bulk),
    AccountHistory (no SystemModstamp; values of any type), LoginHistory (LoginTime only), UserPreference (no time
    field), ActivityHistory (no queries), User, Organization.
Not supported
    SOAP, CometD, managed subscriptions, publishing, Bulk ingest, sharing rules other than the owner's. Permissions take
    effect at once, not within ten minutes.
Where the documentation of Salesforce is silent
    The event of an update contains LastModifiedDate even within one second. A delete is not merged into earlier changes
    of the transaction. Up to 100 equal changes in a row are one event. Overflow counts changed fields without audit
    fields. A channel member names a custom channel by its id, the standard channel and objects by their names.
    A job reads the ids that existed when it began, in pieces, each at a different time.
    Open transactions do not block others: their rows appear late, with the time of their statements.

The org has its own time, ``org.clock``: to advance it ages tokens, locators, the Recycle Bin, retention and
allocations. Waits of the servers take real time: ``keepalive_s``, ``org.pubsub.idle_limit_s``.

Admin commands: POST /admin/<command> with a JSON object, without a token. The last column is the same in Python.

    ``clock``           advance (seconds), freeze, run → now                               org.clock
    ``begin``           user, origin, coalesce, as_gap → transaction                       org.transaction()
    ``commit``          transaction
    ``rollback``        transaction
    ``insert``          [transaction,] object, records, audit → ids (result)
    ``update``          [transaction,] object, ids, values, system
    ``delete``          [transaction,] object, ids: moves them and their children to the Recycle Bin
    ``undelete``        [transaction,] object, ids
    ``purge``           [transaction,] object, ids: a hard delete, no event
    ``merge``           [transaction,] object, winner, losers, values
    ``load``            object, records → ids: creates records without events               org.load()
    ``gap``             object, ids, kind: GAP_CREATE, GAP_UPDATE, GAP_DELETE, GAP_UNDELETE org.gap()
    ``archive``         object, ids: excluded from queries, with the event GAP_DELETE       org.archive()
    ``empty_bin``       purges records that were deleted more than 15 days ago              org.empty_bin()
    ``field``           object, field: {kind, name, …}, convert: with a gap event "001*"    org.change_field()
    ``drop_field``      object, name                                                        org.drop_field()
    ``refuse_bulk``     object                                                              org.store.refuse_bulk()
    ``permissions``     username, access: {object: none | own | all}, access_to_all,
                        hidden: [[object, field]]                                           org.integration
    ``expire_tokens``   expires all access tokens                                           org.tokens.expire()
    ``expire_cursors``  expires all query locators                                          org.cursors.expire()
    ``limits``          request_limit, requests: used so far today
    ``bulk``            piece_rows, page_rows, scientific: numbers like 1.39E8 in CSV,
                        release: continue waiting jobs                                      org.bulk
    ``bus``             allocation (deliveries per day), retention_s, repeat: publish the last n events again,
                        reset: invalidate all replay ids                                    org.bus
    ``channel``         name, members: [{entity, filter_expression, enriched}]              org.channels
    ``rules``           overflow: changes until a transaction overflows, merge              org.rules
    ``migrate``         to another instance: invalid replay ids, new commit numbers         org.migrate()
    ``refresh``         the same with another org id                                        org.refresh()
    ``faults``          see below, clear                                                    org.faults

    GET /admin/org                    ids, secrets, counts, open transactions, injected faults
    GET /admin/ledger?after=N         JSON lines: every commit and the ids it changed
    GET /admin/ledger/Account?number=N&everything=true    JSON lines: the records after commit N

Faults are injected into the next matching requests, each ``times`` times (faults.py has all fields).

    http: [{match, status, code, message, times, after, retry_after}]     "GET .*/query/" 401 INVALID_SESSION_ID,
          403 REQUEST_LIMIT_EXCEEDED, 429, 503 …; match is searched in "METHOD /path"
    rpc:  [{method, code, status, times, after, after_events}]            GetTopic, GetSchema or Subscribe fails with
          "service.auth.error", "subscription.fetch.replayid.corrupted", "subscription.limit.exceeded" …; a stream also
          later, after n events; without a code the connection breaks
    bulk: [{state, message, times, hold_after_rows}]                      Failed, or InProgress until ``bulk`` release
    truncate_csv: number of result bodies; lose_events: number of events
    expire_tokens_after: all tokens expire after that many more requests

Throughput on two busy cores: 75,000 to 100,000 events/s to a subscriber in another process, 12,000 changes/s committed
with their events, 70,000 rows/s of CSV (20 columns), 40,000 records/s loaded at about 1.2 kB each.
"""

from airflow_cdc_provider.sandbox.salesforce.org import SalesforceOrg

__all__ = ["SalesforceOrg"]
