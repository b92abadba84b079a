"""The bundle of a small shop that tests apply, and the environment that it refers to."""

SHOP = """
roster: 1
providers:
  - {slug: acme, name: Acme LLM, kind: openai, base_url: "${LLM_BASE_URL}", api_key: "${LLM_KEY}"}
models:
  - {slug: small, name: Small, provider: acme, model_id: gpt-5-mini}
  - {slug: large, name: Large, provider: acme, model_id: gpt-5, fallback: small, input_price: 1.25}
credentials:
  - {slug: shop, name: Shop, kind: bearer, secret: "${SHOP_TOKEN}", origins: ["https://shop.example"]}
tools:
  - {slug: calculator, name: Calculator, kind: calculator}
  - slug: order_status
    name: Order status
    kind: http
    description: Looks up one order by its number.
    side_effect: read-only
    credential: shop
    settings:
      method: GET
      url: https://shop.example/orders/{order_id}
      parameters:
        - {name: order_id, in: path, type: string, required: true, description: The order's number}
memories:
  - slug: handbook
    name: Employee handbook
    description: Rules on leave, travel and security.
    audience: chosen
    groups: [Staff]
    users: [maya]
    documents:
      - {title: Leave, file: handbook/leave.md}
      - {title: Opening hours, text: "We are open from nine to five."}
agents:
  - slug: librarian
    name: Librarian
    description: Answers from the handbook and names the source.
    instructions: Search first. Quote the passage you rely on.
    model: small
    hidden: true
    memories: [handbook]
  - slug: concierge
    name: Concierge
    description: The first contact for employees.
    instructions: |
      Help the person.
      Or ask a colleague: {{ nothing }} is evaluated, $${HOME} neither.
    model: large
    audience: signed-in
    starters: ["How many days of leave do I get?"]
    tools: [calculator, {tool: order_status, approval: ask, max_calls: 3}]
    roster:
      - {delegate: librarian, when_to_use: Questions about rules., max_calls: 2, on_failure: Not now.}
    limits: {max_steps: 8, max_tool_calls: null, max_seconds: 200, max_tokens: 50000}
"""
ENVIRON = {"LLM_BASE_URL": "https://llm.example/v1", "LLM_KEY": "sk-canary", "SHOP_TOKEN": "t-canary"}
